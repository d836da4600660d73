"""Studies: study files, parts by name, and points."""

"""What to try: study files, parts by name, and points."""

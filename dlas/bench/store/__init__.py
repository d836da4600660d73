"""Files that outlive a process: artifacts and their keys, journals, locks, bounded TOML."""

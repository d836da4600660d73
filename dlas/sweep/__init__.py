"""From a study to its rows."""

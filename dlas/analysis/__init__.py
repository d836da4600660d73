"""From rows to tables and statistics; imports neither torch nor tvm."""

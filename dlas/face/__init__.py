"""What users see: the Python interface, the command line, printed tables and the report."""

"""What is printed: tables, comparisons, listings."""

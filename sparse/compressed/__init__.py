"""What algorithms on compressed rows share: formats, loops, and their GPU form."""

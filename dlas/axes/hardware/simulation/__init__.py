"""A simulated board: its clocks, and the law that its times and powers follow."""

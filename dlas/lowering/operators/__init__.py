"""The schedules of all operators that are not convolutions, one rule a file."""

"""Networks quantised to bytes: from quantised numbers around float operators to integer arithmetic."""

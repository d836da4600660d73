"""Networks that torch exported."""

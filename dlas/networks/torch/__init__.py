"""Networks in torch."""

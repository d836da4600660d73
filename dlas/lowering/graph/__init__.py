"""Networks as Relax graphs: reading them, and the passes that rewrite them."""

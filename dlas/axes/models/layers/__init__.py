"""Networks written as a list of layers in one text: reading it, making modules of it, drawing it."""

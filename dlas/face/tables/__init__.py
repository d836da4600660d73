"""Tables, for the terminal, notebooks, the page and files alike: one model, and a file for each topic."""

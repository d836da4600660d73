"""Boards: the server that runs on one, and the connection to it from the desk."""

"""Steps in processes of their own: a server that forks them, limits, and how they end."""

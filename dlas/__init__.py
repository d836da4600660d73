"""The Deep Learning Acceleration Stack: measure and predict what six layers do to each other."""

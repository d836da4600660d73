"""What techniques that change number types share."""

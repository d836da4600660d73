"""What an autonomous vehicle may meet, as classes of ImageNet."""

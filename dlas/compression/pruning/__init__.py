"""What pruning techniques share: masks, levels, fine-tuning, coupled channels."""

"""Code shared by pruning techniques: masks, levels, fine-tuning, coupled channels."""

"""The forms of spatial pack, one file each: by what the processor multiplies; and what they share."""

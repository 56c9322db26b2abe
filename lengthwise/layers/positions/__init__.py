"""Position encodings of transformers, one file each; what is shared is in `base` and `bias`."""

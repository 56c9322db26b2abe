"""Position encodings of transformers, one module each; `base` and `bias` contain the common parts."""

"""Position encodings of transformers, each in its own module; `base` and `bias` contain the common parts."""

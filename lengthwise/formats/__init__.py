"""File formats of finite machines, with a class for each format; the suffix of a file determines its format."""

"""File formats of finite machines: one class for each format, found by the suffix of a file."""

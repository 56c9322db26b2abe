"""File formats of finite machines: one module for each format, found by the suffix of a file."""

"""File formats of finite machines: one file a format, known by suffix."""

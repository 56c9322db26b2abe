"""Algorithmic tasks, such as sorting, addition, edit distance and subset sum."""

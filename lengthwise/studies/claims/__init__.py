"""The claims of papers, next to the results of this package."""

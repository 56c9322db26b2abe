"""Charts of results, analyses, matrices and memorized words."""

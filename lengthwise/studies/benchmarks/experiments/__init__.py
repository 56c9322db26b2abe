"""One file for each benchmark, with its experiment."""

"""Studies: a folder for each paper, with its experiments, pages, presets and claims."""

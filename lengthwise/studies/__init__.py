"""Studies: each paper in a folder of its own, with its experiments, pages, presets and claims."""

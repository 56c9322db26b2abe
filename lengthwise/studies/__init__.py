"""Studies of papers, benchmarks and our own questions: their experiments, pages, presets and claims."""

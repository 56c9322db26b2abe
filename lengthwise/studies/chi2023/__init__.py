"""Chi et al. (2023), Transformer Working Memory Enables Regular Language Reasoning."""

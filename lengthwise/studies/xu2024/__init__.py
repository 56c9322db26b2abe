"""Xu and Sato (2024), On Expressive Power of Looped Transformers."""

"""Fan et al. (2024), Advancing Regular Language Reasoning in Linear Recurrent Neural Networks."""

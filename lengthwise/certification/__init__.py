"""The finite machine inside a trained model, and what can be said about it for every length."""

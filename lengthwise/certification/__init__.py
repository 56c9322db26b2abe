"""Certificates: the finite machine inside a trained model, and proofs about the model's answers at every length."""

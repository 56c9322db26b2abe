"""Tasks of in-context learning, whose inputs contain examples of the function to predict."""

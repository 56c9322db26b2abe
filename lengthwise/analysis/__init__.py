"""What goes on inside a trained model, as plain data: its states, what its answers depend on, what its depth costs."""

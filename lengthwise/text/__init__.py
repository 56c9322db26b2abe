"""Text: corpora from files, tokenizers, and the task of predicting the next token."""

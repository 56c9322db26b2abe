"""Training: one explicit loop, whose settings are data (`Recipe`)."""

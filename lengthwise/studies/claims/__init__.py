"""The ledger: what papers claim, next to what the results of this package say of it."""

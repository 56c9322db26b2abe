"""The ledger: the claims of papers, next to the results of this package."""

"""Building blocks that own parameters."""

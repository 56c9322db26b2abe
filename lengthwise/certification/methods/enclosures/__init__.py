"""Method of proof: zonotopes around the classes of a tree."""

"""Method of proof: zonotope enclosures around the prototypes of a tree model."""

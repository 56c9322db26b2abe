"""One explicit training loop; the recipe is data."""

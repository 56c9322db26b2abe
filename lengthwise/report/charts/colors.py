"""Colors of all charts."""

GRAY = "#8a8a8a"
PALETTE = ["#3b7dd8", "#e8842c", "#3aa57a", "#c84f8c", "#8e6fd1", "#b59a1f", "#4fb3c8", "#b0563a"]

"""Tables: plain data and text."""

"""Log directories whose files shrink, grow and vanish while they are read."""

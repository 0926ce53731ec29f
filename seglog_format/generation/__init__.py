"""Generate log directories from recipes and seeds."""

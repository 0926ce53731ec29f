"""The six operations that change a directory; each returns a plan that a caller can read and then apply."""

"""The six ways to change a directory, each as a plan that a caller can read and then apply."""

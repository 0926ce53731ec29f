"""The six ways to change a directory, each as a plan that can be looked at and then applied."""

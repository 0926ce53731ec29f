"""Random damages of log directories, and what has to hold of every command afterwards."""

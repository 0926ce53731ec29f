"""Random damages of log directories, and the conditions for every command afterwards."""

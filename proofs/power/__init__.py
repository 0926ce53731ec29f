"""Power cuts on a simulated disk: the disk, what is written on it, and what is promised of it."""

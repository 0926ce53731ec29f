"""Power cuts on a simulated disk: the disk, the workload, and the promises to check."""

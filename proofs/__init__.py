"""Long proofs, run by ``make proof NAME=...``; each writes its results to ``reports/``."""

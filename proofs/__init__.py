"""Long proofs, run by ``make proof NAME=...``; each writes what it found to ``reports/``."""

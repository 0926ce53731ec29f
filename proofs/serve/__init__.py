"""Proofs of ``seglog serve``: attacks, random messages, kills, and an honest client that measures their effect."""

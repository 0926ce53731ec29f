"""Proofs that tests and cases notice what is broken on purpose."""

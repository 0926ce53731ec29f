"""Mutants of the package, by which the conformance suite is judged: small faults that it has to flag."""

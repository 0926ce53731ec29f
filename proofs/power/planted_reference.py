"""The adapter of the reference with one fault of `plants.toml`: ``python -m proofs.power.planted_reference NAME``."""

import sys

from seglog_conformance.reference.testee import Reference
from seglog_conformance.serving import serve

from proofs.power.plants import planted, plants

if __name__ == "__main__":
    with planted(next(plant for plant in plants() if plant.name == sys.argv[1])):
        serve(Reference())

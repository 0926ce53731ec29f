"""Cases of the conformance suite: dictionaries with id, op, result, request and expect."""

import json
from importlib.resources import files


def cases():
    """Yield each case."""
    with files(__name__).joinpath("vectors.jsonl").open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)

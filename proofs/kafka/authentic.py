"""Compare the reference reader with Kafka's own classes on every bundled directory."""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path

from proofs.kafka.agreement import differences
from proofs.unpacking import unpack_archive

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def main() -> int:
    """Print one line per differing case, and the totals."""
    lines = cases = differing = 0
    for directory in sorted(path.parent for path in FIXTURES.glob("kafka-*/*/case.toml")):
        name = directory.relative_to(FIXTURES)
        with gzip.open(directory / "expected.jsonl.gz", "rt", encoding="utf-8") as file:
            expected = [json.loads(line) for line in file]
        with tempfile.TemporaryDirectory() as unpacked:
            unpack_archive(directory / "files.tar.gz", Path(unpacked))
            found = differences(Path(unpacked), expected)
        for text in found[:3]:
            print(f"{name}: {text}")
        cases, lines, differing = cases + 1, lines + len(expected), differing + bool(found)
    print(f"{cases} cases, {lines} lines that Kafka reads, {differing} cases differ")
    return 1 if differing or not cases else 0


if __name__ == "__main__":
    sys.exit(main())

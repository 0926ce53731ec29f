"""Draw the cases of family 50: ``python -m authoring.draw_generated``.

Whole partitions that Hypothesis draws by a seed, and what is asked about them. It draws constants of the code as well, so
that another state of the code leads to others: the file is kept, and drawn again by hand, with a seed that no file had.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from seglog_conformance.generated import document
from seglog_conformance.partitions import SAMPLE_FAMILY, SAMPLE_NAME, SEED, sample

from authoring.casefile import written

FILE: Final = Path(__file__).resolve().parents[1] / "cases" / f"{SAMPLE_FAMILY}-{SAMPLE_NAME}.json"


def drawn(seed: int) -> str:
    """Return the file that a seed leads to."""
    return written(document(sample(seed), SAMPLE_FAMILY, SAMPLE_NAME, "Partitions that a seed has drawn")) + "\n"


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Draw the cases of family 50 again.")
    parser.add_argument("--seed", type=int, default=SEED, help=f"that the ids name ({SEED})")
    FILE.write_text(drawn(parser.parse_args().seed), encoding="utf-8")
    print(f"wrote {FILE.name}")


if __name__ == "__main__":
    main()

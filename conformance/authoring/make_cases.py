"""Write the case files of the conformance suite: ``python -m authoring.make_cases``.

With ``--check`` nothing is written, and a file that is out of date is an error.
The cases themselves are in the modules beside it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from authoring.asked import kept_answers, with_answers
from authoring.casefile import written
from authoring.codecs import KEPT, kept_document
from authoring.draw_generated import FILE
from authoring.every import all_families
from authoring.generations import with_generations
from authoring.recorded_whole import with_whole
from authoring.scale import scale

CASES = Path(__file__).resolve().parents[2] / "conformance" / "cases"


def files() -> dict[Path, str]:
    """Every file that is made, with its content."""
    answers = kept_answers()
    made = {}
    for directory, families in ((CASES, all_families()), (CASES / "scale", [scale()])):
        for family in families:
            document = family.document()
            document["cases"] = [
                with_whole(with_answers(with_generations(case), answers)) for case in document["cases"]
            ]
            made[directory / family.file_name] = written(document) + "\n"
    return {**made, KEPT: kept_document()}


def main() -> int:
    """Write the files, or name those that differ."""
    parser = argparse.ArgumentParser(description="Write the case files of the conformance suite.")
    parser.add_argument("--check", action="store_true", help="write nothing, and fail where a file is out of date")
    check = parser.parse_args().check
    made = files()
    stale = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    left = sorted(set(CASES.rglob("*.json")) - {*made, FILE})
    for path in [*stale, *left]:
        print(f"{'out of date' if check else 'wrote' if path in stale else 'removed'}: {path.name}")
    if check:
        return 1 if stale or left else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made[path], encoding="utf-8")
    for path in left:
        path.unlink()
    print(f"{sum(len(family.cases) for family in all_families())} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Find the faults of tests/faults again after code has moved: report where each is now, or write it with ``--write``.

A fault names its module, the symbol around its text, and the text. If the text is no longer there, every module is
searched: first a symbol of the same dotted name, then of the same last name, then all of the text. A single match is
used; no match or several matches are reported for a person to decide.
"""

from __future__ import annotations

import sys
import tomllib
from typing import TYPE_CHECKING, Any

from proofs.mutants.enforcement import FAULTS, relative, source_files
from proofs.mutants.fault_locations import homes, occurrence_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ENTRY = "[[fault]]"


def is_at_home(entry: Mapping[str, Any], sources: Mapping[str, str]) -> bool:
    """Return whether the text of a fault occurs once in the symbol and file that it names."""
    try:
        occurrence_in(sources.get(entry["file"], ""), entry.get("symbol", ""), entry["find"])
    except ValueError:
        return False
    return "symbol" in entry


def rehomed(text: str, sources: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the text of a list of faults with the present place of each fault, and reports of changes and failures.

    Args:
        text: of a file in tests/faults.
        sources: text of each module of the package, by file name.
    """
    entries = iter(tomllib.loads(text).get("fault", []))
    head, *blocks = text.split(ENTRY)
    found = [_rehomed(block, next(entries), sources) for block in blocks]
    return ENTRY.join([head, *(block for block, _ in found)]), [line for _, line in found if line]


def _rehomed(block: str, entry: Mapping[str, Any], sources: Mapping[str, str]) -> tuple[str, str]:
    if is_at_home(entry, sources):
        return block, ""
    known = {entry["file"]: sources.get(entry["file"], "")}
    candidates = homes(known, entry.get("symbol", ""), entry["find"]) or homes(
        sources, entry.get("symbol", ""), entry["find"]
    )
    if len(candidates) != 1:
        return block, f"LOST {entry['requirement']}: {len(candidates)} places hold {entry['find'].strip()!r}"
    file, symbol = candidates[0]
    kept = [line for line in block.splitlines(keepends=True) if not line.startswith(("file = ", "symbol = "))]
    at = next(number for number, line in enumerate(kept) if line.startswith("requirement = ")) + 1
    kept[at:at] = [f'file = "{file}"\n', f'symbol = "{symbol}"\n']
    return "".join(kept), f"{entry['requirement']}: {file}: {symbol or 'the module itself'}"


def lists() -> Iterator[tuple[Path, str, list[str]]]:
    """Yield each list of faults with its new text and the reports."""
    sources = {relative(path): path.read_text(encoding="utf-8") for path in source_files()}
    for path in sorted(FAULTS.glob("*.toml")):
        yield path, *rehomed(path.read_text(encoding="utf-8"), sources)


def main() -> int:
    """Find the place of all faults again.

    Returns:
        1 if a fault is lost, or if one has moved and ``--write`` is not given.
    """
    writes, is_wrong = "--write" in sys.argv[1:], False
    for path, text, reported in lists():
        for line in reported:
            print(f"{relative(path)}: {line}")
        is_wrong |= any(line.startswith("LOST ") for line in reported) or (bool(reported) and not writes)
        if writes:
            path.write_text(text, encoding="utf-8")
    return 1 if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())

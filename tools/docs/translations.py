"""Which pages in Chinese are behind: ``python -m tools.docs.translations`` names them.

A page names its English source and the digest that the source had when it was translated. What programs print in the
source does not count, nor where its lines break.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path
from typing import Final

from tools.docs.transcripts import BLOCK

REPOSITORY: Final = Path(__file__).resolve().parents[2]
PAGES: Final = "docs/zh"
MARK: Final = re.compile(r"\A<!-- English: (?P<source>\S+) (?P<digest>\w+) -->\n")


def digest(source: str) -> str:
    """Return a short digest of an English text, without its transcripts."""
    return hashlib.sha256(" ".join(BLOCK.sub("", source).split()).encode()).hexdigest()[:12]


def behind(root: Path) -> dict[str, str]:
    """Return the pages whose source has changed, or that name none, each with the reason."""
    found = {}
    for path in sorted((root / PAGES).glob("*.md")):
        mark = MARK.match(path.read_text(encoding="utf-8"))
        source = root / mark["source"] if mark else None
        if mark is None or source is None or not source.is_file():
            found[path.name] = "its first line names no English source"
        elif mark["digest"] != (now := digest(source.read_text(encoding="utf-8"))):
            found[path.name] = f"{mark['source']} has changed: translate that, then write {now} in its first line"
    return found


def main() -> int:
    """Print the pages that are behind."""
    found = behind(REPOSITORY)
    for name, reason in found.items():
        print(f"{PAGES}/{name}: {reason}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

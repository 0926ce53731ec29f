"""Which modules of the package a road calls: ``python -m tools.walks`` lists them; ``--modules`` names each.

The second run on one small partition of a broker counts: what is imported and made once is not part of a road.
"""

from __future__ import annotations

import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from proofs.unpacking import unpack_archive
from seglog_format import open_partition, recover, verify
from tools.demo_data import BROKEN, FIXTURES

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

PACKAGE: Final = "seglog_format"


def first_record(directory: Path) -> None:
    """Read the first record of a partition."""
    with open_partition(directory) as partition:
        next(iter(partition.records()))


def verified(directory: Path) -> None:
    """Verify a partition."""
    list(verify(directory))


def recovered(directory: Path) -> None:
    """Plan the recovery of a partition, and carry it out."""
    recover(directory).apply()


WHOLE: Final = "kafka-4.3.0/segs"
ROADS: Final[dict[str, tuple[Callable[[Path], None], str]]] = {
    "first record": (first_record, WHOLE),
    "verify": (verified, WHOLE),
    "recover and apply": (recovered, BROKEN),
}
"""What is done, and the bundled case of which the first partition is taken."""


@cache
def walk(road: str) -> tuple[str, ...]:
    """Return the modules whose functions a road calls, sorted."""
    run, case = ROADS[road]
    called: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            called.add(str(frame.f_globals.get("__name__", "")))

    with tempfile.TemporaryDirectory() as home:
        for number in ("first", "second"):
            unpack_archive(FIXTURES / case / "files.tar.gz", Path(home) / number)
            directory = min(path.parent for path in (Path(home) / number).rglob("*.log"))
            called.clear()
            sys.setprofile(note)
            try:
                run(directory)
            finally:
                sys.setprofile(None)
    return tuple(sorted(name for name in called if name.partition(".")[0] == PACKAGE))


def main(arguments: list[str]) -> int:
    """Print how many modules each road calls."""
    for road in ROADS:
        modules = walk(road)
        print(f"{road:20} {len(modules):3} modules")
        if "--modules" in arguments:
            print(*(f"    {name}" for name in modules), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Undamaged partition directories, combined into a log directory with checkpoints."""

from __future__ import annotations

import shutil
import tarfile
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from proofs.damaging.contents import held_in
from seglog_format import open_partition

if TYPE_CHECKING:
    import random

    from proofs.damaging.contents import Held

REPOSITORY: Final = Path(__file__).resolve().parents[2]
ROOTS: Final = (REPOSITORY / "fixtures", REPOSITORY.parent / "shared" / "authentic")
LARGEST: Final = 300_000
"""Maximum bytes of an unpacked archive: ten thousand cases are made from them."""

META: Final = "version=0\nbroker.id=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n"


@dataclass(frozen=True)
class Source:
    """A partition directory of a fixture.

    Attributes:
        case: name of the fixture.
        name: of the directory.
        files: their contents.
    """

    case: str
    name: str
    files: dict[str, bytes]

    def write(self, parent: Path) -> Path:
        """Write it into a log directory."""
        path = parent / self.name
        path.mkdir()
        for name, data in self.files.items():
            (path / name).write_bytes(data)
        return path


@cache
def sources() -> tuple[Source, ...]:
    """Return the partitions of all undamaged fixtures, and of directories of brokers if those are available."""
    archives = [*sorted(ROOTS[0].glob("kafka-*/*/files.tar.gz")), *sorted(ROOTS[1].glob("*/*.tar.gz"))]
    return tuple(source for path in archives for source in _sources_in(path))


def _sources_in(archive: Path) -> list[Source]:
    name = f"{archive.parent.parent.name}/{archive.parent.name}/{archive.name.removesuffix('.tar.gz')}"
    if "crash" in name or archive.stat().st_size > LARGEST:
        return []
    found: dict[str, dict[str, bytes]] = {}
    with tarfile.open(archive) as files:
        members = [member for member in files.getmembers() if member.isfile()]
        if sum(member.size for member in members) > LARGEST:
            return []
        for member in members:
            *_, directory, file = ("", *Path(member.name).parts)
            content = files.extractfile(member) or BytesIO()
            found.setdefault(directory, {})[file] = content.read()
    partitions = {directory: inner for directory, inner in found.items() if any(f.endswith(".log") for f in inner)}
    return [Source(name, directory, inner) for directory, inner in partitions.items() if directory]


def build(root: Path, dice: random.Random) -> dict[str, list[Held]]:
    """Make a log directory of one to three partitions.

    Args:
        root: path of the log directory, which is created.
        dice: random number generator for the choice.

    Returns:
        For each partition, its records.
    """
    root.mkdir()
    chosen = {source.name: source for source in dice.sample(sources(), dice.randint(1, 3))}
    held, ends, starts = {}, [], []
    for source in chosen.values():
        path = source.write(root)
        with open_partition(path) as partition:
            held[source.name] = held_in(partition.records())
            topic, _, number = source.name.rpartition("-")
            ends.append(f"{topic} {number} {partition.log_end_offset}")
            starts.append(f"{topic} {number} {partition.log_start_offset}")
    (root / "meta.properties").write_text(META, encoding="utf-8")
    for name, lines in (
        ("recovery-point-offset-checkpoint", ends),
        ("replication-offset-checkpoint", ends),
        ("log-start-offset-checkpoint", starts),
    ):
        (root / name).write_text("\n".join(["0", str(len(lines)), *lines, ""]), encoding="utf-8")
    if dice.random() < 0.5:  # noqa: PLR2004 - as often as not
        (root / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}', encoding="utf-8")
    return held


def discard(root: Path) -> None:
    """Remove a directory, whatever the modes of the files in it."""
    for path in [root, *root.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(root)

"""The page of power cuts, from ``reports/crash-states.json`` and ``reports/crash-disks.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tools.reports import birth

if TYPE_CHECKING:
    from collections.abc import Iterator

REPORTS: Final = Path(__file__).resolve().parents[2] / "reports"
PAGE: Final = "docs/conformance/power-cuts.md"

TEXT: Final = """\
# What a power cut may do to a Kafka log, by release and file system

Storages worked on a file system that writes down every write, length, sync and name. Each was then started on states of
the disk that a power cut may leave at any moment, and what its readers got was compared with what it had acknowledged:
[how, and for a storage of your own](../how-to/survive-a-power-cut.md). Kafka is here with its storage classes, opened
as a broker opens one log. No whole broker was started on these states, so what is below is a reason to look, and not
yet a fault that a consumer sees. Each state has a control in which the process ended and the disk lost nothing; what
a storage also does there is not counted.

{birth}

## What was judged

| storage | histories | distinct states | {ways} |
|---|---:|---:|{columns}
{judged}

Into our own writer, {plants} faults were planted one at a time, such as a sync left out: {noticed} were noticed. The
writer without a fault broke {broken} promises.

## KAFKA-20979

In a clean shutdown, indexes get their lengths. If no sync covers these, a power cut may leave indexes that end in zeros
beside the file that says that the log was closed cleanly. Asked at each closing of some histories, with just these
lengths lost:

| Kafka | closings | with a length that no sync covers | zeros beside a clean end |
|---|---:|---:|---:|
{known}

## What is not confirmed

The judge also noted these kinds on Kafka's storage classes. No stock broker was started on such states, and known
issues were not searched: each may be a fault of the adapter, which stands for the broker, or of the judge. Figures are
the histories in which a kind was noted, by what the file system promises and the piece that a disk writes whole.

| Kafka | noted | {ways} |
|---|---|{columns}
{findings}

| noted | means |
|---|---|
| clean end | a file says that the log was closed cleanly, and indexes end in zeros or have errors |
| does not start | the log cannot be opened |
| hole | a record is missing, and later ones are delivered |
| loses what was flushed | a record is missing that a flush had acknowledged |
| others | as [the how-to](../how-to/survive-a-power-cut.md#what-is-judged) says in the same order |

Other replicas cover each of these as long as they do not lose power at the same time, and the damaged one is not
elected.

## What file systems keep

Random programs were run on loop devices, which were then shut down without writing the log: what was there afterwards
had to be among the states that the profile of the file system calls legal.

{disks_birth}

| file system | programs | lost something | outside the profile |
|---|---:|---:|---:|
{disks}

Replacing the content of a file, with another file's sync after it and none of its own, left:

| file system | by | new | old | empty | zeros |
|---|---|---:|---:|---:|---:|
{replaced}
"""

Json = dict[str, Any]


def pages(notice: str) -> dict[str, str]:
    """Return the page, by path.

    Args:
        notice: says that the page is generated.
    """
    states, disks = (json.loads((REPORTS / f"crash-{name}.json").read_text("utf-8")) for name in ("states", "disks"))
    found = states["implementations"]
    ways = sorted({way for one in found.values() for way in one["statesByProfileAndPiece"]})
    plants = states["plants"]
    text = TEXT.format(
        birth=birth(states),
        ways=" | ".join(ways),
        columns="---:|" * len(ways),
        judged="\n".join(_counted(found, ways)),
        plants=len(plants),
        noticed=sum(one is not None for one in plants.values()),
        broken=len(states["failed"]) or "no",
        known="\n".join(_known(states["KAFKA-20979"])),
        findings="\n".join(_findings(states["findings"], ways)),
        disks_birth=birth(disks),
        disks="\n".join(_disks(disks)),
        replaced="\n".join(_replaced(disks)),
    )
    return {PAGE: notice + text}


def _counted(found: dict[str, Json], ways: list[str]) -> Iterator[str]:
    for name, one in found.items():
        by_way = (f"{one['statesByProfileAndPiece'].get(way, 0):,}" for way in ways)
        yield f"| {_title(name)} | {one['histories']:,} | {one['distinctStates']:,} | {' | '.join(by_way)} |"


def _title(name: str) -> str:
    return "our writer" if name == "reference" else f"Kafka {name.rpartition('@')[2]}, storage classes"


def _known(found: dict[str, Json]) -> Iterator[str]:
    for release, counts in found.items():
        numbers = (f"{counts.get(name, 0)}" for name in ("closed", "unsynced", "believed"))
        yield f"| {release} | {' | '.join(numbers)} |"


def _findings(found: list[Json], ways: list[str]) -> Iterator[str]:
    for one in found:
        shares = (one["histories"].get(way, {"with": 0, "of": 0}) for way in ways)
        cells = (f"{share['with']} of {share['of']}" if share["of"] else "" for share in shares)
        yield f"| {one['implementation'].rpartition('@')[2]} | {one['kind']} | {' | '.join(cells)} |"


def _disks(report: Json) -> Iterator[str]:
    for name in ("ext4", "xfs"):
        one = report[name]
        yield f"| {name}, Linux {report['kernel']} | {one['programs']} | {one['lost']} | {one.get('illegal', 0)} |"


def _replaced(report: Json) -> Iterator[str]:
    for name in ("ext4", "xfs"):
        for way, counts in report[name]["replaced"].items():
            numbers = (f"{counts.get(left, 0)}" for left in ("new", "old", "empty", "zeros"))
            yield f"| {name} | {way} | {' | '.join(numbers)} |"

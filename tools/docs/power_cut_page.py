"""The page of power cuts, from the reports ``crash-states``, ``crash-brokers`` and ``crash-disks``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tools.docs import power_cut_reports
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
as a broker opens one log; [whole brokers](#whole-brokers) follow. Each state has a control in which the process ended
and the disk lost nothing; what a storage also does there is not counted.

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

## Whole brokers

Stock brokers were recorded from the format on: two log directories, small segments, compaction, retention, a move of a
partition, transactions, clean stops and kills. In every other history a flush follows each record
(`log.flush.interval.messages=1`). States that differ in kind were listed, and a stock broker was started on each. It
is a finding if clients, or `seglog verify` after the stop, got something wrong, a second start showed it again, and a
start on the same cut with nothing lost did not.

{brokers_birth}

| Kafka | states | with a finding | controls that were needed | asked by earlier code |
|---|---:|---:|---:|---:|
{by_release}

{examined} of {listed} listed states were judged. Earlier code of the proof kept its judgement alone; what brokers
showed is kept since, and every finding was asked again.

### Orders of syncs that are not kept

Each finding was shrunk to the fewest lost operations, and to the shortest history, as far as there was time. Where they
break one order alone, that order is the cause; where several are named, it was not shrunk, or its profile loses them
together. The reports are in `conformance/reports/power-cuts/`.

| first on the disk | then | rule | not kept by | report |
|---|---|---|---|---|
{orders}

| Kafka | found | order | states | legal under | fewest lost | of operations |
|---|---|---|---:|---|---:|---:|
{confirmed}

What lost or exposed data has its bytes and steps withheld. Names of files that 2.8.2 loses are KAFKA-3968, which 3.0
fixed. ext4 and xfs keep names by the order of their journals. Other replicas cover what a broker loses, as above.
Without any power cut, the end of the process alone, in a move between log directories, left brokers that do not start:

| Kafka | it says |
|---|---|
{without}

### Records that retention removes after a power cut

After a power cut, the time index of a segment that is not the last one may end in zeros, also behind a clean stop, and
in 4.4.0. A broker then takes the largest timestamp of the segment for 0: lookups by time leave it out, and retention by
time removes its records, although all were acknowledged as flushed. It was also seen on file systems that lost power
directly after a clean stop, with small segments, a retention of one day, and settings that make retention run soon:

| Kafka | file system | flushes | time indexes | ending in zeros | records | removed by the broker |
|---|---|---|---:|---:|---:|---:|
{left}

An operator can leave flushes to Kafka's defaults: 4.4.0 then lost nothing of the kind on ext4. Retention by size alone
(`retention.ms=-1`) removes none of these records. Before the first start after a power cut, `seglog verify` names the
time indexes that end in zeros (SEG-TIX-007): without these and the offset indexes beside them, a broker builds both
again (SEG-RCV-006), and a 4.4.0 that was started so kept all records.

### What was searched

Stored issues, pull requests and pages were searched on 2026-11-30 for: time indexes that end in zeros after a clean
stop, syncs of `bootstrap.checkpoint` and of a format, of partition directories and of log directories, hanging
transactions after a power loss, a crash inside a move, and the issues below by number.

| known | what it says | here |
|---|---|---|
| KAFKA-20979 | lengths of indexes at a clean stop; a review names rolled segments | also in 4.4.0, for these alone |
| KAFKA-10207 | indexes that were not trimmed, and retention that removes at the start | the same end, another cause |
| KAFKA-3968 | the name of a new segment | in 2.8.2; the name of its directory, in later ones, was not found |
| KAFKA-15046, KAFKA-16541 | syncs of leader epochs and snapshots that were left out, and came back | not found here |
| KAFKA-19648 | bootstrap records move into the first snapshot | 4.4.0 has no `bootstrap.checkpoint` to lose |
| KAFKA-16082 | a crash in a move, before its end | no start after a kill at its end: `move.md`, 2.8.2 to 4.4.0 |
| KAFKA-20716 | transactions that hang after an unclean election | the same end, another cause |
| KAFKA-21000 | nothing of that number was stored | not compared |

## What the classes show alone

The judge noted these kinds on Kafka's storage classes. Where no whole broker shows the same, it may be a fault of the
adapter, which stands for the broker, or of the judge. Figures are the histories in which a kind was noted, by what the
file system promises and the piece that a disk writes whole.

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

Giving new content to a file, with another file's sync after it and none of its own, left:

| file system | by | new | old | empty | zeros |
|---|---|---:|---:|---:|---:|
{replaced}
"""

Json = dict[str, Any]


def pages(notice: str) -> dict[str, str]:
    """Return the page, by path."""
    states, brokers, disks = (
        json.loads((REPORTS / f"crash-{name}.json").read_text("utf-8")) for name in ("states", "brokers", "disks")
    )
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
        brokers_birth=birth(brokers),
        by_release="\n".join(_by_release(brokers["byRelease"])),
        without="\n".join(_without(brokers["wrongWithoutLoss"])),
        examined=brokers["states"],
        listed=brokers["listed"],
        orders="\n".join(_orders(brokers)),
        confirmed="\n".join(_confirmed(brokers["findings"])),
        left="\n".join(_left(brokers["disks"])),
        disks_birth=birth(disks),
        disks="\n".join(_disks(disks)),
        replaced="\n".join(_replaced(disks)),
    )
    return {PAGE: notice + text, **power_cut_reports.pages(brokers)}


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


def _by_release(found: dict[str, Json]) -> Iterator[str]:
    for release, counts in found.items():
        numbers = (f"{counts.get(name, 0)}" for name in ("states", "with findings", "controls", "of other code"))
        yield f"| {release} | {' | '.join(numbers)} |"


def orders_not_kept(brokers: Json) -> dict[str, list[str]]:
    """Return the releases with findings where an order of syncs alone is broken, by the name of the order."""
    found = {
        name: list(dict.fromkeys(one["release"] for one in brokers["findings"] if one["orders"] == [name]))
        for name in brokers["orders"]
    }
    return {name: releases for name, releases in found.items() if releases}


def _orders(brokers: Json) -> Iterator[str]:
    for name, releases in orders_not_kept(brokers).items():
        order = brokers["orders"][name]
        report = f"`{name}.md`" if name in power_cut_reports.ACCOUNTS else ""
        yield f"| {order['first']} | {order['then']} | {order['rule']} | {', '.join(releases)} | {report} |"


def _confirmed(found: list[Json]) -> Iterator[str]:
    for one in found:
        profiles = ", ".join(f"{name} {count}" for name, count in one["profiles"].items())
        cells = (one["release"], one["kind"], ", ".join(one["orders"]), one["states"], profiles)
        yield f"| {' | '.join(map(str, cells))} | {one['least']['lost']} | {one['least']['operations']} |"


def _without(found: list[Json]) -> Iterator[str]:
    for one in (each for each in found if each["wrong"] == ["does not start"]):
        said = next(text for text in one["errors"] if "Exception: " in text)
        yield f"| {one['release']} | {said.rpartition('Exception: ')[2].partition('. ')[0]} |"


def _left(found: dict[str, dict[str, int]]) -> Iterator[str]:
    for key, counts in found.items():
        release, name = key.split()
        system, _, unflushed = name.partition("-")
        numbers = (f"{counts[name]}" for name in ("rolled", "zeros", "records", "removed"))
        yield f"| {release} | {system} | {'default' if unflushed else 'each record'} | {' | '.join(numbers)} |"


def _disks(report: Json) -> Iterator[str]:
    for name in ("ext4", "xfs"):
        one = report[name]
        yield f"| {name}, Linux {report['kernel']} | {one['programs']} | {one['lost']} | {one.get('illegal', 0)} |"


def _replaced(report: Json) -> Iterator[str]:
    for name in ("ext4", "xfs"):
        for way, counts in report[name]["replaced"].items():
            numbers = (f"{counts.get(left, 0)}" for left in ("new", "old", "empty", "zeros"))
            yield f"| {name} | {way} | {' | '.join(numbers)} |"

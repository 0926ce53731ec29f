"""Reports to file about what whole brokers lose in a power cut, from the report ``crash-brokers``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECTORY: Final = "conformance/reports/power-cuts"
Json = dict[str, Any]


class Account(NamedTuple):
    """The words of a report.

    Attributes:
        title: what is wrong.
        happens: how it comes to it.
        covered: what replication covers.
        operator: what an operator can do.
        known: how it compares with what is known.
        change: what to change.
    """

    title: str
    happens: str
    covered: str
    operator: str
    known: str
    change: str


SYNC: Final = "Run `sync` after the format, before the first start."
ACCOUNTS: Final = {
    "index": Account(
        "retention removes acknowledged records, since a time index ends in zeros",
        "With a flush after each record (`log.flush.interval.messages=1`), no recorded sync covers the last entry of"
        " the indexes of a segment that has ended, nor their new length. After a power cut the time index may end in"
        " zeros, also beside a clean-shutdown file. The largest timestamp of the segment then counts as 0: lookups by"
        " time leave it out, and retention by time removes it.",
        "Replicas that keep their power keep the records. A broker that removed them and leads serves without them.",
        "Leave flushes to Kafka's defaults, or keep by size alone (`retention.ms=-1`). Before the first start after a"
        " power cut, `seglog verify` names such time indexes (SEG-TIX-007): without them and the offset indexes beside"
        " them, a broker builds both again.",
        "KAFKA-20979 is about the same lengths at a clean stop; a review of its first change says that segments that"
        " have been rolled are not covered, and the second change was to close that. 4.4.0, which has both, still shows"
        " it where each record was flushed before. KAFKA-10207 has the same end by another cause.",
        "Sync both indexes of a segment after its last entry and its new length, whatever the recovery point is.",
    ),
    "bootstrap": Account(
        "a broker does not start, since `bootstrap.checkpoint` is empty or has zeros",
        "The format writes `bootstrap.checkpoint.tmp` and renames it. No recorded sync covers its content, and each"
        " start reads it, so a power cut may take it long after the format.",
        "The node does not start; the others go on.",
        SYNC,
        "Nothing was found. 4.4.0 writes no such file (KAFKA-19648), so it is not concerned.",
        "Sync the content before the rename.",
    ),
    "root": Account(
        "a broker does not start, since a log directory is gone that was formatted",
        "The format makes a log directory that is missing. No recorded sync covers its name.",
        "The node does not start; the others go on.",
        f"Make log directories before the format, as mount points are. {SYNC}",
        "Nothing was found.",
        "Sync the parent of a directory that the format makes.",
    ),
    "metadata": Account(
        "a broker serves no topic, since the directory of its metadata log is gone",
        "The name of `__cluster_metadata-0` waits for a sync of its log directory, while what is in it is synced.",
        "A quorum keeps the metadata, as long as most of its nodes keep their power.",
        SYNC,
        "KAFKA-3968 is about the names of segments; since 3.0 the partition directory is synced for them, and not the"
        " log directory that has its name.",
        "Sync the log directory when the metadata log is made.",
    ),
    "partition": Account(
        "records are lost that a flush had acknowledged, with the directory of their partition",
        "With a flush after each record, a new partition acknowledges records, and its directory is synced. The name of"
        " that directory waits for a later checkpoint.",
        "Replicas that keep their power keep the records.",
        "Let some time pass between the creation of a topic and the first records that must not be lost.",
        "KAFKA-3968 is about the names of segments; since 3.0 the partition directory is synced for them, and not the"
        " log directory that has its name.",
        "Sync the log directory when a partition is made, before its first flush counts.",
    ),
    "marker": Account(
        "readers of committed records stop, since the end marker of a transaction is lost",
        "Without flushes, the end marker in a partition may be lost while the record survives by which the coordinator"
        " holds the transaction for complete: two starts did not write the marker again, and readers stayed behind it.",
        "A leader whose replicas kept their power has the marker.",
        "The text that KAFKA-20716 proposes names `kafka-transactions.sh find-hanging`, and `abort`; not tried here.",
        "KAFKA-20716 proposes to document the same end after an unclean election; nothing about a power cut was found.",
        "Sync the partitions of a transaction before the coordinator writes that it is complete.",
    ),
}


def pages(brokers: Json) -> dict[str, str]:
    """Return a report for each order of syncs whose breach alone makes findings, by its path."""
    made = {}
    for name in ACCOUNTS:
        if found := [one for one in brokers["findings"] if one["orders"] == [name]]:
            made[f"{DIRECTORY}/{name}.md"] = "\n".join(_lines(brokers["orders"][name], ACCOUNTS[name], found)) + "\n"
    return made


def _lines(order: Json, account: Account, found: list[Json]) -> Iterator[str]:
    releases = list(dict.fromkeys(one["release"] for one in found))
    profiles = list(dict.fromkeys(name for one in found for name in one["least"]["profiles"]))
    least = min(found, key=lambda one: (one["least"]["lost"], one["least"]["operations"]))
    is_withheld = any("disclosure" in one for one in found)
    yield f"# Kafka {', '.join(releases)} after a power cut, legal under {', '.join(profiles)}: {account.title}\n"
    if is_withheld:
        yield 'disclosure = "withheld": bytes and steps go to the maintainers first.\n'
    yield f"## What happens\n\n{account.happens}\n"
    yield "| Kafka | a stock broker | states | legal under | lost | of operations |\n|---|---|---:|---|---:|---:|"
    for one in found:
        smallest = one["least"]
        cells = (one["states"], ", ".join(one["profiles"]), smallest["lost"], smallest["operations"])
        yield f"| {one['release']} | {one['kind']} | {' | '.join(map(str, cells))} |"
    yield "\nTwo starts showed each; one on the same moment with nothing lost did not. *Lost* and *of operations*"
    yield "are the fewest lost operations that still show it, and the length of the shortest history.\n"
    yield f"The order that is not kept: {order['first']}, before {order['then']}."
    yield f"{order['rule']} asks for it.\n" if order["rule"] else "No rule of the specification asks for it yet.\n"
    yield "## How to repeat it\n"
    if is_withheld:
        yield "The directory that shows it, the operations and what consumers saw are kept for the maintainers.\n"
    else:
        yield "```text\nseglog conform crash --broker {release} --seed {seed} --states 1000 -o failures\n```\n".format(
            release=least["release"], seed=least["least"]["seed"]
        )
        yield "Threads race, so another recording has other numbers. Here it was, of the first"
        yield f"{least['least']['operations']} operations:\n"
        yield "\n".join(f"- `{text}`" for text in least["lost"]) + "\n"
    yield f"## What replication covers\n\n{account.covered}\n"
    yield f"## What an operator can do\n\n{account.operator}\n"
    yield f"## What is known\n\n{account.known}\n"
    yield f"## What to change\n\n{account.change}"

"""``seglog transactions``: the open transactions of a disk, and whether the coordinator knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.exit_status import DONE, FINDINGS, UNREADABLE
from seglog_format.cli.options import PATH, json_option
from seglog_format.cli.output import diagnose, printable, time_text, write_json, write_text
from seglog_format.cli.passing_over import PassingOver

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.doctor.transactions import OpenTransaction

EPILOG: Final = """\b
Examples:
  seglog transactions /var/lib/kafka/data-1 /var/lib/kafka/data-2
  seglog transactions --producer 7 /var/lib/kafka/data
  seglog transactions --json /var/lib/kafka/data | jq 'select(.isHanging)'"""


@click.command(epilog=EPILOG)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@click.option("--producer", type=int, metavar="ID", help="Only the transactions of this producer id.")
@click.option("--transactional-id", metavar="ID", help="Only the transactions of this transactional id.")
@json_option
def command(paths: tuple[Path, ...], *, producer: int | None, transactional_id: str | None, as_json: bool) -> int:
    """List the transactions that have no end marker in the partitions of the log directories PATHS.

    Each line names the partition, the producer, its transactional id from __transaction_state, where the transaction
    began, and how many offsets wait behind it for consumers of committed records. A transaction is hanging if no
    transactional id has it open in that partition: no coordinator will end it. That is said only if every partition of
    __transaction_state is in these directories, or if the transactional id of the producer is in one of them.

    The exit status is 1 if a transaction is open, and 3 if something could not be read.
    """
    from seglog_format.cluster.cluster import open_cluster
    from seglog_format.doctor.transactions import Coordinator, open_transactions

    cluster = open_cluster(paths)
    coordinator = Coordinator(cluster)
    status = DONE
    passing_over = PassingOver("partitions")
    for problem in cluster.coordinators.problems:
        diagnose(problem)
        status = UNREADABLE
    for directory in cluster.directories.directories:
        for _, entry in sorted(directory.partitions.items()):
            with passing_over.errors_of(entry.path), directory.open(entry) as partition:
                for each in open_transactions(entry, partition, coordinator):
                    if producer in {None, each.producer_id} and transactional_id in {None, each.transactional_id}:
                        _write(each, as_json=as_json)
                        status = max(status, FINDINGS)
                if partition.transactions.damage is not None:
                    diagnose(f"{partition.transactions.damage}; transactions from there on are not known")
                    status = UNREADABLE
    return max(status, passing_over.status())


def _write(one: OpenTransaction, *, as_json: bool) -> None:
    if as_json:
        write_json(as_object(one))
        return
    name = "" if one.transactional_id is None else f", transactional id {printable(one.transactional_id)}"
    epoch = "" if one.producer_epoch is None else f" epoch {one.producer_epoch}"
    since = "" if one.since_ms is None else f", {time_text(one.since_ms)}"
    waiting = f"; {one.log_end_offset - one.first_offset} offsets wait" if one.is_blocking else ""
    where = printable(str(one.path))
    write_text(f"{where}: producer {one.producer_id}{epoch}{name}: open from offset {one.first_offset}{since}{waiting}")
    write_text(f"  {one.standing.value}")


def as_object(one: OpenTransaction) -> dict[str, Any]:
    """Return an open transaction for JSON."""
    from seglog_format.doctor.transactions import Standing

    return {
        "type": "openTransaction",
        "path": str(one.path),
        "producerId": one.producer_id,
        "producerEpoch": one.producer_epoch,
        "transactionalId": one.transactional_id,
        "firstOffset": one.first_offset,
        "sinceTimestamp": one.since_ms,
        "isHanging": None if one.standing is Standing.UNDECIDED else one.standing is Standing.HANGING,
        "isBlocking": one.is_blocking,
        "lastStableOffset": one.last_stable_offset,
        "logEndOffset": one.log_end_offset,
    }

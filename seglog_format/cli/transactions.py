"""``seglog transactions``: the open transactions of a disk, and whether the coordinator knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import DONE, FINDINGS, UNREADABLE, PassingOver
from seglog_format.cli.options import PATH_OR_ARCHIVE, json_option
from seglog_format.cli.output import diagnose, printable, time_text, write_json, write_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.doctor.transactions import Coordinator, OpenTransaction, TransactionAt
    from seglog_format.log.listing import PartitionEntry
    from seglog_format.log.partition import Partition

EPILOG: Final = """\b
Examples:
  seglog transactions /var/lib/kafka/data-1 /var/lib/kafka/data-2
  seglog transactions --producer 7 /var/lib/kafka/data
  seglog transactions --at payments-0:4711 /var/lib/kafka/data
  seglog transactions --json /var/lib/kafka/data | jq 'select(.isHanging)'"""


def point_of(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, int] | None:
    """Parse a partition and an offset."""
    if value is None:
        return None
    name, _, text = value.rpartition(":")
    if not name or not text.isascii() or not text.isdecimal():
        msg = f"{value!r} is not PARTITION:OFFSET, such as payments-0:4711"
        raise click.BadParameter(msg)
    return name, int(text)


@click.command(epilog=EPILOG)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH_OR_ARCHIVE)
@click.option("--producer", type=int, metavar="ID", help="Only the transactions of this producer id.")
@click.option("--transactional-id", metavar="ID", help="Only the transactions of this transactional id.")
@click.option(
    "--at",
    "point",
    metavar="PARTITION:OFFSET",
    callback=point_of,
    help="The transactions that were open there, with their ends, such as payments-0:4711.",
)
@json_option
def command(
    paths: tuple[Path, ...],
    *,
    producer: int | None,
    transactional_id: str | None,
    point: tuple[str, int] | None,
    as_json: bool,
) -> int:
    """List the transactions that have no end marker in the partitions of the log directories PATHS.

    Each line names the partition, the producer, its transactional id from __transaction_state, where the transaction
    began, and how many offsets wait behind it for consumers of committed records. A transaction is hanging if no
    transactional id has it open in that partition: no coordinator will end it. That is said only if every partition of
    __transaction_state is in these directories, or if the transactional id of the producer is in one of them.

    With --at, the transactions are listed that were open at an offset, also those that have ended since.

    The exit status is 1 if a transaction is open, or was open there, and 3 if something could not be read.
    """
    from seglog_format.cluster.cluster import open_cluster
    from seglog_format.doctor.transactions import Coordinator

    cluster = open_cluster(paths)
    coordinator = Coordinator(cluster)
    status = DONE
    passing_over = PassingOver("partitions")
    for problem in cluster.coordinators.problems:
        diagnose(problem)
        status = UNREADABLE
    for directory in cluster.directories.directories:
        for _, entry in sorted(directory.partitions.items()):
            if point is not None and entry.path.name != point[0]:
                continue
            with passing_over.errors_of(entry.path), directory.open(entry) as partition:
                for each in _found(entry, partition, coordinator, point):
                    if producer in {None, each.producer_id} and transactional_id in {None, each.transactional_id}:
                        _write(each, as_json=as_json)
                        status = max(status, FINDINGS)
                if point is None and partition.transactions.damage is not None:
                    diagnose(f"{partition.transactions.damage}; transactions from there on are not known")
                    status = UNREADABLE
    status = max(status, passing_over.status())
    if status == DONE and not as_json:
        write_text("no transaction is open" if point is None else "no transaction was open there")
    return status


def _found(
    entry: PartitionEntry, partition: Partition, coordinator: Coordinator, point: tuple[str, int] | None
) -> Iterator[OpenTransaction] | Iterator[TransactionAt]:
    from seglog_format.doctor.transactions import open_transactions, transactions_at

    if point is None:
        return open_transactions(entry, partition, coordinator)
    return transactions_at(entry, partition, point[1], coordinator)


def _write(one: OpenTransaction | TransactionAt, *, as_json: bool) -> None:
    from seglog_format.doctor.transactions import OpenTransaction

    if as_json:
        write_json(as_object(one) if isinstance(one, OpenTransaction) else ended_object(one))
    elif isinstance(one, OpenTransaction):
        _write_open(one)
    else:
        _write_ended(one)


def ended_object(one: TransactionAt) -> dict[str, Any]:
    """Return a transaction that was open at an offset for JSON."""
    return {"type": "transactionAt", **_fields(one), "endOffset": one.end_offset, "outcome": one.outcome}


def as_object(one: OpenTransaction) -> dict[str, Any]:
    """Return an open transaction for JSON."""
    from seglog_format.doctor.transactions import Standing

    return {
        "type": "openTransaction",
        **_fields(one),
        "isHanging": None if one.standing is Standing.UNDECIDED else one.standing is Standing.HANGING,
        "isBlocking": one.is_blocking,
        "lastStableOffset": one.last_stable_offset,
        "logEndOffset": one.log_end_offset,
    }


def _fields(one: OpenTransaction | TransactionAt) -> dict[str, Any]:
    return {
        "path": str(one.path),
        "producerId": one.producer_id,
        "producerEpoch": one.producer_epoch,
        "transactionalId": one.transactional_id,
        "firstOffset": one.first_offset,
        "sinceTimestamp": one.since_ms,
    }


def _write_ended(one: TransactionAt) -> None:
    end = "not ended" if one.outcome is None else f"{one.outcome} at offset {one.end_offset}"
    write_text(f"{_producer_text(one)}: from offset {one.first_offset}, {time_text(one.since_ms)}; {end}")


def _write_open(one: OpenTransaction) -> None:
    since = "" if one.since_ms is None else f", {time_text(one.since_ms)}"
    waiting = f"; {one.log_end_offset - one.first_offset} offsets wait" if one.is_blocking else ""
    write_text(f"{_producer_text(one)}: open from offset {one.first_offset}{since}{waiting}")
    write_text(f"  {one.standing.value}")


def _producer_text(one: OpenTransaction | TransactionAt) -> str:
    """Return the partition and the producer of a transaction, as far as they are known."""
    epoch = "" if one.producer_epoch is None else f" epoch {one.producer_epoch}"
    name = "" if one.transactional_id is None else f", transactional id {printable(one.transactional_id)}"
    return f"{printable(str(one.path))}: producer {one.producer_id}{epoch}{name}"

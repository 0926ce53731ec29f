"""The logs of the matrix, each in a partition directory of its own, stored until their contents change.

Batches of magic 2 that a producer may send are sent to ``seglog serve --writable``. Transactions, the time of the
append and older messages are in the file as Kafka's own classes, or those of another library, have encoded them.
Kafka's own cleaner compacts the compacted logs.
"""

from __future__ import annotations

import json
import shutil
import struct
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.registry import AdapterError

from proofs.kafka.oracle import Oracle, OracleError
from proofs.serve.client import PRODUCE, Client
from proofs.serve.process import serve_process
from proofs.writers.cells import CODECS, MAGIC_2, WRITERS, Cell, Kind, Way, cells_of
from proofs.writers.programs import NotWrittenError, Program
from proofs.writers.requests import batch_of, batches_to_encode, is_relative
from seglog_format import CompressionCodec, build_batch, encode_batch, new_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from proofs.writers.cells import Writer
    from proofs.writers.rows import Row

HOST: Final = "127.0.0.1"
INIT_PRODUCER_ID: Final = 22
OFFSET_SIZE: Final = 8
PREFIX: Final = struct.Struct(">8xi")
"""Of a message: its offset, and its size from there on."""
NO_PRODUCER: Final = {"transactional_id": None, "transaction_timeout": 1000, "producer_id": -1, "producer_epoch": -1}
"""What a producer says that has no id yet."""
RELEASE: Final = "4.1"
"""Of the cleaner."""
LATER_MS: Final = 1 << 42
"""When the cleaner runs: after everything."""
NOTE: Final = "made.json"


@dataclass(frozen=True, slots=True)
class Made:
    """A log that was made, or the reason why it was not.

    Attributes:
        cell: its cell.
        path: path of its partition directory.
        version: version of the library.
        language: language of the library.
        reason: reason why there is no log; empty if there is one.
    """

    cell: Cell
    path: Path
    version: str = ""
    language: str = ""
    reason: str = ""


def make_logs(
    root: Path, batches: Sequence[Sequence[Row]], say: Callable[[str], None], writers: Sequence[Writer] = WRITERS
) -> Iterator[Made]:
    """Make the logs that are not there yet, writer by writer.

    Args:
        root: directory of all logs with these rows.
        batches: rows of each batch.
        say: called with messages about the progress.
        writers: the writers.
    """
    for writer in writers:
        found = [_kept(root, cell) for cell in cells_of(writer)]
        yield from (made for made in found if isinstance(made, Made))
        missing = [cell for cell in found if isinstance(cell, Cell)]
        if missing:
            say(f"{writer.title} ({writer.adapter or 'ours'}): writing {len(missing)} logs")
            yield from _made_by(writer, missing, root, batches)


def _kept(root: Path, cell: Cell) -> Made | Cell:
    """Return a log that was made before; its cell if there is none."""
    path = _home(root, cell)
    try:
        reported = json.loads((path.parent / NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return cell
    return Made(cell, path, **reported)


def _home(root: Path, cell: Cell) -> Path:
    """Return the partition directory of a cell; each is in a log directory of its own."""
    return root / cell.topic / f"{cell.topic}-0"


def _made_by(writer: Writer, cells: Sequence[Cell], root: Path, batches: Sequence[Sequence[Row]]) -> Iterator[Made]:
    try:
        with ExitStack() as stack:
            program = stack.enter_context(Program(writer)) if writer.adapter else Ourselves()
            for cell in cells:
                yield _made(program, cell, root, batches)
    except (AdapterError, NotWrittenError) as error:
        yield from (Made(cell, _home(root, cell), reason=str(error)) for cell in cells)


def _made(program: Program | Ourselves, cell: Cell, root: Path, batches: Sequence[Sequence[Row]]) -> Made:
    path = _home(root, cell)
    if cell.codec not in program.codecs:
        return Made(cell, path, program.version, program.language, f"it has no {cell.codec} here")
    shutil.rmtree(path.parent, ignore_errors=True)
    path.mkdir(parents=True)
    try:
        if cell.is_served:
            _send(program, cell, path, batches)
        else:
            _write(program, cell, path, batches)
    except (NotWrittenError, OracleError, OSError) as error:
        shutil.rmtree(path.parent, ignore_errors=True)
        return Made(cell, path, program.version, program.language, str(error) or type(error).__name__)
    reported = {"version": program.version, "language": program.language}
    (path.parent / NOTE).write_text(json.dumps(reported), encoding="utf-8")
    return Made(cell, path, **reported)


class Ourselves:
    """This package as an encoder."""

    version = metadata.version("seglog-format")
    language = "Python"
    codecs = CODECS

    def encode(self, batch: dict[str, Any], **_: object) -> bytes:
        """Encode a batch."""
        records = [
            new_record(
                key=_unhexed(each["key"]),
                value=_unhexed(each["value"]),
                timestamp_ms=int(each["timestamp"]),
                headers=[(bytes.fromhex(key), _unhexed(value)) for key, value in each["headers"]],
            )
            for each in batch["records"]
        ]
        return encode_batch(build_batch(records, codec=CompressionCodec[batch["codec"].upper()]))


def _unhexed(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _send(program: Program | Ourselves, cell: Cell, path: Path, batches: Sequence[Sequence[Row]]) -> None:
    """Write a log through a server."""
    with serve_process("--writable", "--acknowledge", "written", str(path)) as port:
        if cell.writer.way is Way.CLIENT:
            address = {"bootstrap": f"{HOST}:{port}", "topic": cell.topic}
            for rows in batches:
                program.encode(batch_of(rows, 0, cell.codec), place=address)
            return
        with Client(port, timeout=60) as client:
            producer_id = new_producer_id(client) if cell.kind is Kind.IDEMPOTENT else -1
            for batch in batches_to_encode(cell, batches, producer_id):
                append(client, cell.topic, program.encode(batch))


def new_producer_id(client: Client) -> int:
    """Get a producer id from a server."""
    return int(client.ask(INIT_PRODUCER_ID, 4, **NO_PRODUCER).producer_id)


def append(client: Client, topic: str, data: bytes) -> None:
    """Append an encoded batch through a server.

    Raises:
        NotWrittenError: the server refuses it.
    """
    topics = [{"name": topic, "partition_data": [{"index": 0, "records": data}]}]
    answer = client.ask(PRODUCE, 9, transactional_id=None, acks=-1, timeout=0, topic_data=topics)
    found = answer.responses[0].partition_responses[0]
    if found.error_code:
        msg = f"{found.error_code.name}: {found.error_message}"
        raise NotWrittenError(msg)


def _write(program: Program | Ourselves, cell: Cell, path: Path, batches: Sequence[Sequence[Row]]) -> None:
    """Write a log of encoded batches, and compact it if its kind requires that."""
    end = 0
    with (path / f"{0:020}.log").open("wb") as log:
        for batch in batches_to_encode(cell, batches):
            end += batch["recordsCount"]
            data = program.encode(batch)
            log.write(data if cell.magic == MAGIC_2 else with_offsets(data, cell, end))
    if cell.kind is Kind.COMPACTED:
        _compact(path, end)


def with_offsets(data: bytes, cell: Cell, end: int) -> bytes:
    """Set the offsets of messages as a leader does: one after the other, of a wrapper that of its last message.

    Args:
        data: encoded batch.
        cell: cell of its log.
        end: offset after the last message.
    """
    if cell.codec != "none":
        return (end - 1).to_bytes(8, "big") + data[8:] if is_relative(cell) else data
    position, messages = 0, []
    while position < len(data):
        following = position + PREFIX.size + PREFIX.unpack_from(data, position)[0]
        messages.append(data[position + OFFSET_SIZE : following])
        position = following
    first = end - len(messages)
    return b"".join((first + number).to_bytes(OFFSET_SIZE, "big") + each for number, each in enumerate(messages))


def _compact(path: Path, end: int) -> None:
    """Compact a log with Kafka's cleaner; the active segment is not cleaned, and is therefore empty."""
    (path / f"{end:020}.log").touch()
    config = {"cleanup.policy": "compact"}
    with Oracle(RELEASE) as oracle:
        oracle.must("clean", directory=str(path), config=config, nowMs=LATER_MS, highWatermark=end, mapSlots=2 * end)
    for deleted in path.glob("*.deleted"):
        deleted.unlink()

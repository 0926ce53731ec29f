"""Writes of the chosen records by each writer: to ``seglog serve --writable``, transactions to a stock broker.

A writer is given all records at once. If it refuses them, it is given the first subject, then one more each time, and
at last all subjects that it accepted: so only subjects that it cannot write are missing from its logs.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Final

from seglog_conformance.registry import AdapterError, listed

from proofs.kafka.broker import Broker
from proofs.serve.broker import RELEASE
from proofs.serve.client import METADATA, Client
from proofs.serve.process import serve_process
from proofs.writers.cells import CODECS, SERVED, WRITERS, Kind, Way
from proofs.writers.making import HOST, Ourselves, append, new_producer_id
from proofs.writers.programs import NotWrittenError, Program
from proofs.writers.requests import batch_of, produced_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from proofs.pairing.subjects import Subject
    from proofs.writers.cells import Writer
    from proofs.writers.rows import Row

TOPIC_SECONDS: Final = 60
KEEP_OLD: Final = "log.retention.ms=-1\n"
"""A broker would delete records whose times are those of long ago."""
SERVED_KINDS: Final = {Way.CLIENT: SERVED, Way.ENCODER: SERVED, Way.OURS: (Kind.PLAIN,)}
"""What is asked of a writer through our server; encoders only what they are listed for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """One log that a writer was asked to write.

    Attributes:
        writer: its writer.
        kind: plain, idempotent or transactional.
        codec: name of the codec.
        version: version of the library.
        language: language of the library.
        subjects: the written subjects, in order.
        refused: reasons by the name of a refused subject.
        data: bytes of the log.
    """

    writer: Writer
    kind: Kind
    codec: str
    version: str
    language: str
    subjects: tuple[Subject, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    data: bytes = b""


@dataclass(slots=True)
class Target:
    """A topic to write to.

    Attributes:
        port: port of the server.
        topic: its name.
        producer_id: producer id of an encoder's batches; -1 for none.
        sequence: sequence of the next record with that id.
    """

    port: int
    topic: str
    producer_id: int = -1
    sequence: int = 0


def newest(writer: Writer) -> Writer:
    """Return the writer in the first release of the suite's matrix."""
    adapter = listed(writer.adapter).adapter if writer.adapter else None
    return writer if adapter is None else replace(writer, adapter=f"{adapter.name}@{adapter.asked[0]}")


def write_logs(
    home: Path,
    subjects: Sequence[Subject],
    say: Callable[[str], None],
    writers: Sequence[Writer] = WRITERS,
    codecs: Sequence[str] = CODECS,
) -> Iterator[Log | str]:
    """Yield all logs without transactions, after they are written, or the reason why a writer cannot be asked.

    Args:
        home: an empty directory.
        subjects: the subjects to write.
        say: called with messages about the progress.
        writers: the writers.
        codecs: the codecs.
    """
    for number, writer in enumerate(writers):
        wanted = [kind for kind in SERVED_KINDS[writer.way] if writer.way is Way.CLIENT or kind in writer.wanted]
        if not wanted:
            continue
        logs = home / str(number)
        logs.mkdir()
        say(f"{writer.title} ({writer.way.value}): {', '.join(kind.value for kind in wanted)}")
        with serve_process("--writable", "--acknowledge", "written", str(logs)) as port:
            found = list(_by(writer, wanted, codecs, port, subjects))
        yield from _with_data(found, logs)


def write_transactions(
    home: Path,
    subjects: Sequence[Subject],
    say: Callable[[str], None],
    writers: Sequence[Writer] = WRITERS,
    codecs: Sequence[str] = CODECS,
) -> Iterator[Log | str]:
    """Yield the logs of committed transactions that whole clients wrote to a stock broker. See `write_logs`."""
    home.mkdir()
    broker = Broker(RELEASE, home, settings=KEEP_OLD)
    found: list[tuple[Log, str] | str] = []
    with broker.running():
        for writer in writers:
            if writer.way is Way.CLIENT:
                say(f"{writer.title}: transactions")
                found += _by(writer, [Kind.TRANSACTIONAL], codecs, broker.port, subjects)
    yield from _with_data(found, broker.logs)


def _with_data(found: Sequence[tuple[Log, str] | str], logs: Path) -> Iterator[Log | str]:
    """Yield the logs with their bytes, which a server has stored."""
    for one in found:
        if isinstance(one, str):
            yield one
            continue
        log, topic = one
        data = b"".join(path.read_bytes() for path in sorted((logs / f"{topic}-0").glob("*.log")))
        yield replace(log, data=data)


def _by(
    writer: Writer, kinds: Sequence[Kind], codecs: Sequence[str], port: int, subjects: Sequence[Subject]
) -> Iterator[tuple[Log, str] | str]:
    """Yield the logs of a writer, each with the name of its topic."""
    try:
        with ExitStack() as stack:
            program = stack.enter_context(Program(writer)) if writer.adapter else Ourselves()
            topics = (f"{writer.adapter.partition('@')[0] or 'seglog'}.{number}" for number in count())
            for kind in kinds:
                refused: dict[str, str] = {}
                for codec in codecs:
                    if codec in program.codecs:
                        log = Log(
                            writer=writer,
                            kind=kind,
                            codec=codec,
                            version=program.version,
                            language=program.language,
                            subjects=tuple(subjects),
                        )
                        yield _written(program, log, port, topics, refused)
    except (AdapterError, NotWrittenError) as error:
        yield f"{writer.title} ({writer.way.value}): {error}"


def _written(
    program: Program | Ourselves, log: Log, port: int, topics: Iterator[str], refused: dict[str, str]
) -> tuple[Log, str]:
    """Write a log; add refused subjects to the known ones."""
    target = _new_target(log, port, next(topics))
    left = _left(log, refused)
    if left and _refusal(program, log, target, _rows(left)):
        refused |= _refused(program, log, _new_target(log, port, next(topics)), left)
        target = _new_target(log, port, next(topics))
        left = _left(log, refused)
        if left and (reason := _refusal(program, log, target, _rows(left))):
            msg = f"{log.codec}: it refused what it had taken before: {reason}"
            raise NotWrittenError(msg)
    return replace(log, subjects=left, refused=dict(refused)), target.topic


def _refused(program: Program | Ourselves, log: Log, target: Target, subjects: Sequence[Subject]) -> dict[str, str]:
    """Return the reasons why subjects are refused together with those before them, by name."""
    kept: list[Subject] = []
    found = {}
    for subject in subjects:
        if reason := _refusal(program, log, target, _rows([*kept, subject])):
            found[subject.name] = reason
        else:
            kept.append(subject)
    return found


def _left(log: Log, refused: Mapping[str, str]) -> tuple[Subject, ...]:
    return tuple(subject for subject in log.subjects if subject.name not in refused)


def _rows(subjects: Sequence[Subject]) -> list[Row]:
    return [row for subject in subjects for row in subject.rows]


def _new_target(log: Log, port: int, topic: str) -> Target:
    """Create a topic on a server, and get a producer id for an encoder that needs one."""
    deadline = time.monotonic() + TOPIC_SECONDS
    with Client(port, timeout=TOPIC_SECONDS) as client:
        while not _is_there(client, topic):
            if time.monotonic() > deadline:
                msg = f"the server does not make {topic}"
                raise NotWrittenError(msg)
            time.sleep(0.1)
        has_id = log.writer.way is Way.ENCODER and log.kind is Kind.IDEMPOTENT
        return Target(port, topic, new_producer_id(client) if has_id else -1)


def _is_there(client: Client, topic: str) -> bool:
    found = client.ask(METADATA, 9, topics=[{"name": topic}], allow_auto_topic_creation=True).topics[0]
    return not found.error_code and all(not one.error_code for one in found.partitions)


def _refusal(program: Program | Ourselves, log: Log, target: Target, rows: Sequence[Row]) -> str:
    """Write rows as one batch; return the reason for a refusal, empty if there was none."""
    batch = batch_of(rows, 0, log.codec)
    try:
        if log.writer.way is Way.CLIENT:
            address = {"bootstrap": f"{HOST}:{target.port}", "topic": target.topic}
            asked = {} if log.kind is Kind.PLAIN else {"producer": log.kind.value}
            program.encode(batch, place=address | asked)
            return ""
        if target.producer_id >= 0:
            batch |= produced_by(target.producer_id, target.sequence)
        with Client(target.port, timeout=TOPIC_SECONDS) as client:
            append(client, target.topic, program.encode(batch))
    except (NotWrittenError, OSError) as error:
        return str(error) or type(error).__name__
    target.sequence += len(rows)
    return ""

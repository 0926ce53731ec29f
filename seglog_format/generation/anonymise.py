"""Make a copy of a log directory that is fit to share: same structure, other content."""

from __future__ import annotations

import json
import secrets
from bisect import bisect_right
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.checkpoints import (
    decode_clean_shutdown,
    decode_leader_epoch_checkpoint,
    decode_meta_properties,
    decode_offset_checkpoint,
    decode_partition_metadata,
    encode_clean_shutdown,
    encode_leader_epoch_checkpoint,
    encode_offset_checkpoint,
    encode_partition_metadata,
)
from seglog_format.codec.framing import frame_at
from seglog_format.codec.side_files import decode_producer_snapshot, encode_producer_snapshot
from seglog_format.errors import FormatError, RefusedError, UnreadableError, UsageError
from seglog_format.generation.anonymous_entries import (
    NOWHERE,
    PLAUSIBLE,
    VERSION_SIZE,
    EntryReplacer,
    MessageReplacer,
    Pseudonyms,
)
from seglog_format.log.path_kind import PathKind, directory_kind, partition_name
from seglog_format.model import INT32_MAX, INT64_MAX, Tail, TailKind
from seglog_format.names import METADATA_TOPIC, OFFSET_CHECKPOINT_KINDS, FileKind, parse_file_name
from seglog_format.schema.fixed_fields import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY, TRANSACTION_INDEX_ENTRY
from seglog_format.schema.text import json_object
from seglog_format.storage.files import LOCAL_FILES
from seglog_format.storage.log_storage import LOCAL, read_file, stays_inside
from seglog_format.storage.new_directory import all_or_nothing, write_new_file

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from os import PathLike

    from seglog_format.names import FileName, PartitionDirectoryName
    from seglog_format.storage.byte_source import ByteSource


# -- replace names, ids and times in the files beside the logs; each method returns the new content of a file ---------


QUORUM_FIELDS: Final = frozenset(
    {
        "clusterId",
        "leaderId",
        "leaderEpoch",
        "votedId",
        "votedDirectoryId",
        "appliedOffset",
        "currentVoters",
        "voterId",
        "data_version",
    }
)


TIMES: Final = (range(-1, 1 << 51), range(10**18, 0x20 << 56))
"""Numbers that may be times: milliseconds or microseconds, and nanoseconds; 8 bytes of text are no such number."""


class FileReplacer:
    """Replaces the content of files that are no logs.

    Args:
        pseudonyms: the replacements.
    """

    def __init__(self, pseudonyms: Pseudonyms) -> None:
        self._pseudonyms = pseudonyms
        self._by_kind: Mapping[FileKind, Callable[[bytes], bytes]] = {
            FileKind.LEADER_EPOCH_CHECKPOINT: self._leader_epochs,
            FileKind.PARTITION_METADATA: self._partition_metadata,
            FileKind.META_PROPERTIES: self._meta_properties,
            FileKind.CLEAN_SHUTDOWN: _clean_shutdown,
            FileKind.QUORUM_STATE: self._quorum_state,
            FileKind.PRODUCER_SNAPSHOT: self._producer_snapshot,
            FileKind.OFFSET_INDEX: MovedPositions().index,
            FileKind.TIME_INDEX: self._time_index,
            FileKind.TRANSACTION_INDEX: _transaction_index,
            **dict.fromkeys(OFFSET_CHECKPOINT_KINDS, self._offset_checkpoint),
        }

    def replaced(self, kind: FileKind, data: bytes) -> bytes:
        """Return the new content of a file.

        Raises:
            FormatError: the file cannot be read.
        """
        return self._by_kind[kind](data)

    def _time_index(self, data: bytes) -> bytes:
        size = TIME_INDEX_ENTRY.size
        whole = len(data) - len(data) % size
        entries = [
            TIME_INDEX_ENTRY.pack(self._time(timestamp_ms), offset)
            for timestamp_ms, offset in TIME_INDEX_ENTRY.iter_unpack(data[:whole])
        ]
        return b"".join(entries) + self._pseudonyms.fresh(len(data) - whole)

    def _time(self, timestamp_ms: int) -> int:
        """Move a time; replace a number that is none: it may be text from another file."""
        if any(timestamp_ms in times for times in TIMES):
            return self._pseudonyms.time(timestamp_ms)
        return INT64_MAX - secrets.randbelow(1 << 20)

    def _leader_epochs(self, data: bytes) -> bytes:
        return encode_leader_epoch_checkpoint(decode_leader_epoch_checkpoint(data, NOWHERE).entries)

    def _partition_metadata(self, data: bytes) -> bytes:
        return encode_partition_metadata(self._pseudonyms.identifier(decode_partition_metadata(data, NOWHERE).topic_id))

    def _offset_checkpoint(self, data: bytes) -> bytes:
        found = decode_offset_checkpoint(data, NOWHERE)
        return encode_offset_checkpoint(
            entry._replace(topic=self._pseudonyms.name(entry.topic)) for entry in found.entries
        )

    def _producer_snapshot(self, data: bytes) -> bytes:
        producers = decode_producer_snapshot(data, NOWHERE).producers
        return encode_producer_snapshot(
            replace(producer, timestamp_ms=self._pseudonyms.time(producer.timestamp_ms)) for producer in producers
        )

    def _meta_properties(self, data: bytes) -> bytes:
        found = decode_meta_properties(data, NOWHERE)
        node = "broker.id" if found.version == 0 else "node.id"
        texts = {"version": str(found.version), node: None if found.node_id is None else str(found.node_id)}
        for name, text in (("cluster.id", found.cluster_id), ("directory.id", found.directory_id)):
            texts[name] = None if text is None else self._pseudonyms.identifier(text)
        return "".join(f"{name}={text}\n" for name, text in texts.items() if text is not None).encode()

    def _quorum_state(self, data: bytes) -> bytes:
        state = json_object(data)
        if state is None:
            raise FormatError(NOWHERE, "SEG-LDR-006", expected="a JSON object", found="something else")
        try:
            return json.dumps(self._json(state), separators=(",", ":")).encode()
        except RecursionError as error:
            raise FormatError(NOWHERE, "SEG-LDR-006", expected="flat JSON", found="deeply nested JSON") from error

    def _json(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(value, dict):
            return {
                name if name in QUORUM_FIELDS else self._pseudonyms.name(name): self._json(each)
                for name, each in value.items()
            }
        if isinstance(value, list):
            return [self._json(each) for each in value]
        return self._pseudonyms.identifier(value) if isinstance(value, str) else value


def _clean_shutdown(data: bytes) -> bytes:
    return encode_clean_shutdown(decode_clean_shutdown(data, NOWHERE))


def _transaction_index(data: bytes) -> bytes:
    whole = len(data) - len(data) % TRANSACTION_INDEX_ENTRY.size
    for version, *numbers in TRANSACTION_INDEX_ENTRY.iter_unpack(data[:whole]):
        if version or max(numbers) >= PLAUSIBLE:
            raise FormatError(NOWHERE, "SEG-TXN-002", expected="version 0, a producer id, offsets", found="others")
    return data[:whole] + bytes(len(data) - whole)


class MovedPositions:
    """The positions of entries in the original log and in the new one."""

    def __init__(self) -> None:
        self._old: list[int] = []
        self._new: list[int] = []
        self._next = self._end = 0

    def add(self, position: int, size: int) -> None:
        """Add an entry of the original log, and the size of the new one."""
        if not self._old or self._new[-1] - self._old[-1] != self._next - position:
            self._old.append(position)
            self._new.append(self._next)
        self._next += size

    def end(self, position: int, size: int) -> None:
        """Note where the last whole entry of the original log ends."""
        self.add(position, size - position)
        self._end = size

    def index(self, data: bytes) -> bytes:
        """Return an offset index with new positions; it keeps its size and its zeros."""
        whole = len(data) - len(data) % OFFSET_INDEX_ENTRY.size
        entries = OFFSET_INDEX_ENTRY.iter_unpack(data[:whole])
        entries_moved = [OFFSET_INDEX_ENTRY.pack(offset, self._moved(position)) for offset, position in entries]
        return b"".join(entries_moved) + bytes(len(data) - whole)

    def _moved(self, position: int) -> int:
        if not 0 <= position <= self._end:
            return INT32_MAX - secrets.randbelow(1 << 20)  # no position in the log: perhaps something else
        number = bisect_right(self._old, position) - 1
        return min(position + self._new[number] - self._old[number], INT32_MAX) if number >= 0 else position


# -- the copy of a log directory --------------------------------------------------------------------------------------


LOG_KINDS: Final = (FileKind.LOG, FileKind.METADATA_SNAPSHOT, FileKind.BOOTSTRAP_SNAPSHOT)
LOG, INDEX = FileKind.LOG.value, FileKind.OFFSET_INDEX.value
PIECE_SIZE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """A part of a directory that could not be read.

    Attributes:
        path: of its file, below the new directory.
        position: of its first byte in the original file.
        size: in bytes.
        problem: what could not be read.
        is_missing: whether the new directory lacks the file; otherwise random bytes replace the part.
    """

    path: str
    position: int
    size: int
    problem: str
    is_missing: bool = False


@dataclass(frozen=True, slots=True)
class Anonymised:
    """A copy of a directory without its content.

    Attributes:
        path: of the copy.
        partitions: number of partition directories in it.
        files: number of files in it.
        not_understood: the parts that could not be read, in order.
    """

    path: Path
    partitions: int
    files: int
    not_understood: tuple[NotUnderstood, ...]


def anonymise(
    directory: str | PathLike[str], new: str | PathLike[str], *, report: Callable[[int], None] | None = None
) -> Anonymised:
    """Copy a log directory or a partition directory, and replace what it says about its owner.

    These stay: the structure, sizes, codecs, offsets, sequences, attributes, producer ids, transactions, and damage.
    Keys, values, headers, names, ids and hosts are replaced by others of the same size; equal ones stay equal. Times
    move by one difference. Compressed batches get other sizes, since their new content compresses differently; the
    positions in indexes follow. Bytes that cannot be read are replaced by random ones.

    Args:
        directory: a log directory or partition directory; nothing in it is changed.
        new: path of the copy; it must not exist, or must be empty.
        report: called with the number of bytes of logs read so far.

    Returns:
        The number of files, and the parts that could not be read.

    Raises:
        UsageError: the directory is neither a log directory nor a partition directory, or cannot be read; or the other
            path is not empty, or lies inside it.
        WriteError: a file could not be written. After any error, no new file remains.

    Examples:
        >>> import tempfile
        >>> from seglog_format import anonymise
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     made = anonymise("demo/kafka-4.3.0/segs-0", f"{parent}/shared/orders-0")
        ...     (made.partitions, made.not_understood)
        (1, ())
    """
    source, target = Path(directory), Path(new)
    if target.resolve().is_relative_to(source.resolve()):
        msg = f"{target} lies inside {source}, where nothing is written"
        raise UsageError(msg)
    kind = directory_kind(source)
    with all_or_nothing(target) as staging:
        copy = _Copy(source, staging, report)
        if kind is PathKind.LOG_DIRECTORY:
            copy.log_directory()
        else:
            name = partition_name(source.resolve().name)
            copy.partition(source, name.topic if name is not None else "", "")
    return Anonymised(target, copy.partitions, copy.files, tuple(copy.not_understood))


class _Copy:
    """The copy of one directory, while it is made."""

    def __init__(self, source: Path, target: Path, report: Callable[[int], None] | None) -> None:
        self.partitions = self.files = self._read = 0
        self._report = report or (lambda _read: None)
        self.not_understood: list[NotUnderstood] = []
        self._source = source
        self._target = target
        self._pseudonyms = Pseudonyms()
        self._side_files = FileReplacer(self._pseudonyms)

    def log_directory(self) -> None:
        """Copy a log directory."""
        for path in self._directory(self._source, "", ""):
            name = partition_name(path.name)
            if name is None:
                self._leave_out("", f"a directory whose name, of {len(path.name)} characters, is no partition's")
            else:
                self.partition(path, name.topic, self._directory_name(name) + "/")

    def _directory_name(self, name: PartitionDirectoryName) -> str:
        unique = self._pseudonyms.noise(name.unique.encode()).hex()[: len(name.unique)] if name.unique else ""
        return str(name._replace(topic=self._pseudonyms.name(name.topic), unique=unique))

    def partition(self, source: Path, topic: str, below: str) -> None:
        """Copy a partition directory."""
        self.partitions += 1
        for _ in self._directory(source, below, topic):
            self._leave_out(below, "a directory inside that of a partition")

    def _leave_out(self, path: str, problem: str) -> None:
        self.not_understood.append(NotUnderstood(path, 0, 0, problem, is_missing=True))

    @contextmanager
    def _left_out_if_large(self, path: str) -> Iterator[None]:
        """Leave out a file that is too large to be read whole."""
        try:
            yield
        except RefusedError as error:
            self._leave_out(path, f"{error.found} bytes: {error.requirements[0]}")

    def _directory(self, source: Path, below: str, topic: str) -> list[Path]:
        """Copy the files of a directory; return the directories in it."""
        if below:
            LOCAL_FILES.make_directory(self._target / below)
        entries = LOCAL.entries(source)
        for entry in entries.skipped:
            self._leave_out(below, entry.reason)
        names = self._inside(source, entries.files, below)
        for name in names:
            try:
                parsed = parse_file_name(name)
            except FormatError:
                parsed = None
            if parsed is None:
                self._leave_out(below, f"a file whose name, of {len(name)} characters, has no meaning")
            elif parsed.kind is not FileKind.LOCK:
                self._file(source / name, parsed, names, below, topic)
        return [source / name for name in self._inside(source, entries.directories, below)]

    def _inside(self, source: Path, names: list[str], below: str) -> list[str]:
        """Return the entries of a directory without links that lead out: the user did not name what is there."""
        kept = []
        for name in names:
            if LOCAL.is_link(source / name) and not stays_inside(self._source, source / name):
                self._leave_out(below, "a link that leads out of the directory")
            else:
                kept.append(name)
        return kept

    def _file(self, source: Path, parsed: FileName, names: Collection[str], below: str, topic: str) -> None:
        name = source.name
        if parsed.kind in LOG_KINDS:
            self._log(source, names, below + name, topic if parsed.kind is FileKind.LOG else METADATA_TOPIC)
        elif parsed.kind is not FileKind.OFFSET_INDEX or name.replace(INDEX, LOG, 1) not in names:
            # an offset index is written with its log, whose positions it holds
            with self._left_out_if_large(below + name):
                self._write(below + name, self._replaced(parsed.kind, read_file(LOCAL, source), below + name))

    def _write(self, path: str, data: bytes) -> None:
        write_new_file(self._target, path, [data])
        self.files += 1

    def _replaced(self, kind: FileKind, data: bytes, path: str) -> bytes:
        if not data.strip(b"\0"):
            return data
        try:
            return self._side_files.replaced(kind, data)
        except (FormatError, UnicodeError) as error:
            problem = error.requirements[0] if isinstance(error, FormatError) else "it is no text"
            self.not_understood.append(NotUnderstood(path, 0, len(data), f"the file cannot be read: {problem}"))
            kept = data[:VERSION_SIZE] if kind is FileKind.PRODUCER_SNAPSHOT else b""
            return kept + self._pseudonyms.fresh(len(data) - len(kept))

    # Logs

    def _log(self, source: Path, names: Collection[str], path: str, topic: str) -> None:
        replacer = EntryReplacer(self._pseudonyms, MessageReplacer(topic, self._pseudonyms))
        moved = MovedPositions()
        write_new_file(self._target, path, self._entries(source, path, replacer, moved))
        self.files += 1
        index = source.name.replace(LOG, INDEX, 1)
        if index != source.name and index in names:
            with self._left_out_if_large(path.replace(LOG, INDEX, 1)):
                self._write(path.replace(LOG, INDEX, 1), moved.index(read_file(LOCAL, source.with_name(index))))

    def _entries(self, source: Path, path: str, replacer: EntryReplacer, moved: MovedPositions) -> Iterator[bytes]:
        position = 0
        with LOCAL.open(source) as file:
            while position < file.size:
                try:
                    frame = frame_at(file, position, file.size)
                except UnreadableError:
                    raise  # the disk refuses it: that is no damage
                except FormatError:
                    frame = Tail(TailKind.NONE, position, file.size - position)
                if isinstance(frame, Tail):
                    break
                new = replacer.entry(frame)
                if new.problem:
                    self.not_understood.append(NotUnderstood(path, position, frame.end - position, new.problem))
                yield new.data
                moved.add(position, len(new.data))
                self._report(self._read + frame.end)
                position = frame.end
            yield from self._rest(file, position, path, replacer)
        moved.end(position, file.size)
        self._read += file.size

    def _rest(self, file: ByteSource, position: int, path: str, replacer: EntryReplacer) -> Iterator[bytes]:
        """Yield what replaces the bytes after the last whole entry."""
        start, is_noted = position, False
        while position < file.size:
            data = bytes(file.view(position, position + PIECE_SIZE))
            is_noise = bool(data.strip(b"\0"))
            if is_noise and not is_noted:
                problem = "no whole entry begins here"
                self.not_understood.append(NotUnderstood(path, start, file.size - start, problem))
                is_noted = True
            if position == start:
                yield replacer.unreadable(data)
            else:
                yield self._pseudonyms.fresh(len(data)) if is_noise else data
            position += len(data)

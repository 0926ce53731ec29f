"""The frames between a consumer and ``seglog serve``, written as a capture that Wireshark reads."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from kio.schema.errors import ErrorCode
from seglog_conformance.toolchains import child_processes

from proofs.serve.client import Client
from proofs.serve.process import serve_process
from seglog_format import walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FETCH_VERSION: Final = 11
"""Maximum version of Fetch that Wireshark 4.0 knows, the one of Debian 12."""
BROKER_PORT: Final = 9092
"""Port of the server in the capture, by which Wireshark recognizes Kafka's protocol."""
CLIENT_PORT: Final = 40_000
EARLIEST: Final = -2
"""Asks ListOffsets for the first offset of a log."""
FETCH_BYTES: Final = 1 << 20
ONE_ENTRY: Final = 1
"""The first entry is sent whole in any case: with this maximum, nothing follows it."""
SEGMENT_BYTES: Final = 32_768
"""Bytes of a TCP segment in the capture; an IP packet holds less than 65,536."""
LINE_BYTES: Final = 16
BATCH_MAGIC: Final = 2


class Said(NamedTuple):
    """One frame with the size before it.

    Attributes:
        is_answer: whether the server has sent it.
        frame: its bytes.
    """

    is_answer: bool
    frame: bytes


class Conversation(NamedTuple):
    """Fetches of a whole partition.

    Attributes:
        said: requests and answers, in turns.
        answers: the log bytes of each answer, none in the last.
        is_damaged: whether the last answer reports damage.
    """

    said: Sequence[Said]
    answers: Sequence[bytes]
    is_damaged: bool


class _Listening(Client):
    """A client that records the frames of both sides."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.said: list[Said] = []

    def send_frame(self, frame: bytes) -> None:
        """Send bytes with their size before them, and record them."""
        self.said.append(Said(is_answer=False, frame=_sized(frame)))
        super().send_frame(frame)

    def receive_frame(self) -> bytes | None:
        """Return the next answer, and record it."""
        frame = super().receive_frame()
        if frame is not None:
            self.said.append(Said(is_answer=True, frame=_sized(frame)))
        return frame


def _sized(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def fetch_all(directory: Path) -> Conversation:
    """Serve a partition directory and fetch its log from its start to its end.

    Each fetch returns as many batches as a consumer requests. If the log has messages of magic 0 or 1, each fetch
    returns one entry, so a reader's mistake about an entry does not affect the next one.
    """
    with serve_process(str(directory)) as port:
        with Client(port) as client:
            topic, _, number = directory.name.rpartition("-")
            start = client.list_offset(topic, EARLIEST, number=int(number)).offset
            answers = list(_answers(client, directory.name, start, FETCH_BYTES))
        has_messages = any(frame.header.magic < BATCH_MAGIC for each in answers for frame in walk(each.data))
        with _Listening(port) as listening:
            answers = list(_answers(listening, directory.name, start, ONE_ENTRY if has_messages else FETCH_BYTES))
            is_damaged = answers[-1].error is ErrorCode.corrupt_message
            return Conversation(listening.said, [each.data for each in answers], is_damaged)


class _Answer(NamedTuple):
    """An answer to a fetch: its log bytes and its error."""

    data: bytes
    error: ErrorCode


def _answers(client: Client, partition: str, start: int, size: int) -> Iterator[_Answer]:
    """Yield the answers up to the first empty one: at the end of the log, or at damage.

    Raises:
        ValueError: an answer has another error.
    """
    topic, _, number = partition.rpartition("-")
    limit, offset = {"partition_max_bytes": size}, start
    while True:
        found = client.fetch(topic, offset, version=FETCH_VERSION, number=int(number), partition=limit)
        answer = _Answer(bytes(found.records or b""), found.error_code)
        yield answer
        if answer.error not in {ErrorCode.none, ErrorCode.corrupt_message}:
            msg = f"{partition}: fetching from {offset} is answered with {answer.error.name}"
            raise ValueError(msg)
        if not answer.data:
            return
        offset = max(frame.header.next_offset for frame in walk(answer.data))


def hex_dump(said: Sequence[Said]) -> str:
    """Write a conversation as ``text2pcap`` reads it.

    ``I`` starts a segment that the broker sends, ``O`` one of the client; lines of bytes follow.
    """
    lines: list[str] = []
    for each in said:
        for start in range(0, len(each.frame), SEGMENT_BYTES):
            lines.append("I" if each.is_answer else "O")
            lines += _hex_lines(each.frame[start : start + SEGMENT_BYTES])
    return "\n".join([*lines, ""])


def _hex_lines(data: bytes) -> Iterator[str]:
    return (f"{at:06x} {data[at : at + LINE_BYTES].hex(' ')}" for at in range(0, len(data), LINE_BYTES))


def write_capture(said: Sequence[Said], path: Path) -> None:
    """Write a conversation as a capture of one TCP connection.

    Raises:
        subprocess.CalledProcessError: ``text2pcap`` fails.
    """
    command = ["text2pcap", "-q", "-D", "-T", f"{BROKER_PORT},{CLIENT_PORT}", "-", str(path)]
    child_processes.run(
        command, directory=child_processes.NOWHERE, input=hex_dump(said), text=True, check=True, capture_output=True
    )

"""The matrix of written logs: each cell is one log of one writer, of one kind, codec and magic."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
OLD_CODECS: Final = CODECS[:-1]
"""Those that messages of magic 0 and 1 may have."""
MAGIC_2: Final = 2


class Kind(Enum):
    """The kind of the batches of a log."""

    PLAIN = "plain"
    IDEMPOTENT = "idempotent"
    """One producer id, rising sequences."""
    TRANSACTIONAL = "transactional"
    """Transactions of ten batches, each committed."""
    LOG_APPEND_TIME = "LogAppendTime"
    COMPACTED = "compacted"
    """A sixth of each batch was superseded, and Kafka's own cleaner has removed it."""


SERVED: Final = (Kind.PLAIN, Kind.IDEMPOTENT)
"""What `seglog serve --writable` takes; everything else goes into a file as it was encoded."""


class Way(Enum):
    """How a writer is asked."""

    CLIENT = "client"
    """A whole producer, which is told an address."""
    ENCODER = "encoder"
    """The part of a library that makes the bytes; a small client of ours sends them."""
    OURS = "ours"
    """This package."""


@dataclass(frozen=True, slots=True)
class Writer:
    """A library that writes.

    Attributes:
        title: title in reports.
        adapter: adapter of the conformance suite that builds and asks it; empty for this package.
        way: how it is asked.
        wanted: kinds of batches of magic 2.
        old_magics: magics of messages that it also writes.
    """

    title: str
    adapter: str
    way: Way
    wanted: tuple[Kind, ...] = (Kind.PLAIN,)
    old_magics: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One log.

    Attributes:
        writer: its writer.
        kind: kind of its batches.
        codec: name of its codec.
        magic: magic of its entries.
    """

    writer: Writer
    kind: Kind
    codec: str
    magic: int = MAGIC_2

    @property
    def topic(self) -> str:
        """Return a name that no other cell has."""
        name = self.writer.adapter or "seglog"
        return f"{name}.{self.kind.value}.{self.codec}.{self.magic}"

    @property
    def is_served(self) -> bool:
        """Return whether it is written through a server."""
        return self.kind in SERVED and self.magic == MAGIC_2


JAVAS_KINDS: Final = (Kind.IDEMPOTENT, Kind.TRANSACTIONAL, Kind.LOG_APPEND_TIME, Kind.COMPACTED)

WRITERS: Final = (
    Writer("seglog-format", "", Way.OURS),
    Writer("aiokafka", "aiokafka-wire", Way.CLIENT),
    Writer("kafka-python", "kafka-python-wire", Way.CLIENT),
    Writer("librdkafka", "librdkafka", Way.CLIENT),
    Writer("Java", "kafka-clients-wire", Way.CLIENT),
    Writer("franz-go", "franz-go-wire", Way.CLIENT),
    Writer("sarama", "sarama-wire", Way.CLIENT),
    Writer("kafka-go", "kafka-go-wire", Way.CLIENT),
    Writer("kafkajs", "kafkajs-wire", Way.CLIENT),
    Writer("@platformatic/kafka", "platformatic-kafka-wire", Way.CLIENT),
    Writer("rskafka", "rskafka", Way.ENCODER),
    Writer("kafka-protocol", "kafka-protocol", Way.ENCODER),
    Writer("Java", "kafka-clients", Way.ENCODER, JAVAS_KINDS, (0, 1)),
    Writer("aiokafka", "aiokafka", Way.ENCODER, (Kind.IDEMPOTENT,), (1,)),
    Writer("kafka-python", "kafka-python", Way.ENCODER, (Kind.IDEMPOTENT,), (1,)),
    Writer("sarama", "sarama", Way.ENCODER, (Kind.IDEMPOTENT,)),
    Writer("kafka-go", "kafka-go", Way.ENCODER, (), (1,)),
)


def cells_of(writer: Writer) -> Iterator[Cell]:
    """Yield the cells that a writer is asked to write."""
    for kind in writer.wanted:
        yield from (Cell(writer, kind, codec) for codec in CODECS)
    for magic in writer.old_magics:
        yield from (Cell(writer, Kind.PLAIN, codec, magic) for codec in OLD_CODECS)

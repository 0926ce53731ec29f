"""Named changes to the bytes of a log: a field of a header, a byte of the records, the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from seglog_format.codec.checksum import crc32c
from seglog_format.codec.framing import walk
from seglog_format.schema.fixed_fields import ATTRIBUTES_POSITION, RECORD_BATCH_HEADER_SIZE
from seglog_format.schema.record_batch import FIELDS

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

CRC: Final = slice(17, 21)
UNTOUCHED: Final = frozenset({"crc"})
HEADER_FIELDS: Final = tuple(name for name, row in FIELDS.items() if row.size and name not in UNTOUCHED)
VALUES: Final = ("zero", "minus one", "largest", "smallest", "one more", "one less", "twice")
ENDS: Final = ("cut",)
"""Changes of the end. Readers differ about other bytes after the last batch; fixed cases cover those."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change to the bytes of a log.

    Attributes:
        where: a field of a header, ``records``, or ``end``.
        what: new value, or change of the end.
        batch: number of the batch, modulo their count.
        at: number of the byte in the records, modulo their size; for the end, number of bytes.
        repairs_crc: whether to correct the checksum.
    """

    where: str
    what: str
    batch: int = 0
    at: int = 0
    repairs_crc: bool = True

    @property
    def name(self) -> str:
        """Return a name such as ``records_count: one less, checksum repaired``."""
        repaired = ", checksum repaired" if self.repairs_crc and self.where != "end" else ""
        return f"{self.where}: {self.what}{repaired}"


def mutations() -> SearchStrategy[Mutation]:
    """Return a strategy for all changes, simple ones first."""
    batch = st.integers(0, 2)
    in_header = st.builds(
        Mutation, st.sampled_from(HEADER_FIELDS), st.sampled_from(VALUES), batch, st.just(0), st.booleans()
    )
    in_records = st.builds(
        Mutation, st.just("records"), st.sampled_from(VALUES[:6]), batch, st.integers(0, 60), st.booleans()
    )
    at_end = st.builds(
        Mutation, st.just("end"), st.sampled_from(ENDS), st.just(0), st.integers(1, 80), st.just(value=False)
    )
    return st.one_of(in_header, in_records, at_end)


def mutated(data: bytes, mutation: Mutation) -> bytes:
    """Return the bytes of a log with a change."""
    if mutation.where == "end":
        return data[: -min(mutation.at, len(data) - 1)]
    frames = list(walk(data))
    frame = frames[mutation.batch % len(frames)]
    batch = bytearray(frame.data)
    start, size = _position_of(batch, mutation)
    old = int.from_bytes(batch[start : start + size], "big", signed=True)
    batch[start : start + size] = _value(old, mutation.what, size).to_bytes(size, "big", signed=True)
    if mutation.repairs_crc:
        batch[CRC] = crc32c(bytes(batch[ATTRIBUTES_POSITION:])).to_bytes(4, "big")
    return data[: frame.position] + bytes(batch) + data[frame.end :]


def _position_of(batch: bytearray, mutation: Mutation) -> tuple[int, int]:
    if mutation.where == "records":
        return RECORD_BATCH_HEADER_SIZE + mutation.at % (len(batch) - RECORD_BATCH_HEADER_SIZE), 1
    row = FIELDS[mutation.where]
    return row.offset or 0, row.size or 1


def _value(old: int, what: str, size: int) -> int:
    largest = (1 << 8 * size - 1) - 1
    new = {
        "zero": 0,
        "minus one": -1,
        "largest": largest,
        "smallest": -largest - 1,
        "one more": old + 1,
        "one less": old - 1,
        "twice": old * 2,
    }[what]
    return min(max(new, -largest - 1), largest)

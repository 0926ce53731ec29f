"""Family 47: as much as brokers let into one answer, by recipes instead of bytes, and digests instead of records.

Bytes and expectations are both made here without our encoder or decoder: what the recipe says is said again as records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from seglog_conformance.summary import summary

from authoring.batches import CRC, LOG_APPEND_TIME, Batch, Rec, with_field
from authoring.casefile import Family, must
from authoring.codecs import gzip, lz4_frame, xerial, zstd
from authoring.control import data, empty, marker
from authoring.derived import at_scale
from authoring.legacy import inner_messages
from authoring.messages import Msg, Wrapper

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from authoring.casefile import Basis, Json, Unit

COMPRESSORS: Final = {"gzip": gzip, "snappy": xerial, "lz4": lz4_frame, "zstd": zstd}
BASE_OFFSET: Final = 2**31 - 5
MILLION: Final = 1_000_000
BASE_TIMESTAMP: Final = 1_700_000_000_000


@dataclass(frozen=True)
class Repeated:
    """Entries that are laid out for offset 0, so many times over.

    Attributes:
        units: of a round.
        times: how many rounds.
        stored: bytes to lay down instead of those that the units make.
    """

    units: tuple[Unit, ...]
    times: int
    stored: tuple[bytes, ...] | None = None

    @property
    def step(self) -> int:
        """Offsets that one round stands for."""
        return self.units[-1].next_offset

    def part(self) -> Json:
        """Return the part of a recipe."""
        stored = self.stored or tuple(unit.encoded() for unit in self.units)
        entries = [{"data": one.hex(), "at": int.from_bytes(one[:8], "big")} for one in stored]
        return {"repeat": entries, "times": self.times, "step": self.step}

    def batches(self, offset: int) -> Iterator[Json]:
        """Yield what a reader answers for each entry, from an offset on."""
        answers = [unit.answer(0) for unit in self.units]
        for first in range(offset, offset + self.times * self.step, self.step):
            for answer in answers:
                yield {**answer, "records": [_moved(record, first) for record in answer["records"]]}


@dataclass(frozen=True)
class Made:
    """Batches of records that differ in offset and timestamp alone.

    Attributes:
        records: of each batch.
        times: how many batches.
        value: the pattern of a value.
        value_times: how often it stands in a value.
        codec: none or gzip.
    """

    records: int
    times: int = 1
    value: bytes = b"v"
    value_times: int = 1
    codec: str = "none"

    @property
    def step(self) -> int:
        """Offsets that one batch stands for."""
        return self.records

    def part(self) -> Json:
        """Return the part of a recipe."""
        batch = {
            "records": self.records,
            "value": self.value.hex(),
            "valueTimes": self.value_times,
            "codec": self.codec,
        }
        return {"batch": batch, "times": self.times}

    def batches(self, offset: int) -> Iterator[Json]:
        """Yield what a reader answers for each batch, from an offset on."""
        value = (self.value * self.value_times).hex()
        for first in range(offset, offset + self.times * self.records, self.records):
            yield {
                "isControl": False,
                "records": [
                    {"offset": str(first + at), "timestamp": str(BASE_TIMESTAMP + at), "key": None, "value": value}
                    for at in range(self.records)
                ],
            }


Piece = Repeated | Made


def _moved(record: Json, first: int) -> Json:
    return {**record, "offset": str(int(record["offset"]) + first)}


def answered(pieces: Sequence[Piece], *, with_control: bool) -> Iterator[Json]:
    """Yield what a reader answers for some pieces, with the control batches or without."""
    offset = BASE_OFFSET
    for piece in pieces:
        yield from (batch for batch in piece.batches(offset) if with_control or not batch["isControl"])
        offset += piece.step * piece.times


class Scale:
    """Adds cases to the family."""

    def __init__(self, family: Family) -> None:
        self.family = family

    def valid(self, name: str, why: str, basis: Basis, *pieces: Piece) -> None:
        """Add pieces that have to be read to their end."""
        self._add(name, "valid", why, basis, pieces, pieces, {})

    def invalid(self, name: str, why: str, basis: Basis, reject: str, good: Piece, *bad: Piece) -> None:
        """Add pieces that have to be refused behind the first."""
        self._add(name, "invalid", why, basis, (good, *bad), (good,), {"reject": {"class": reject}})

    def _add(
        self, name: str, result: str, why: str, basis: Basis, pieces: Sequence[Piece], good: Sequence[Piece], more: Json
    ) -> None:
        recipe = [piece.part() for piece in pieces]
        sums = {
            "surfaced": summary(answered(good, with_control=True)),
            "hidden": summary(answered(good, with_control=False)),
        }
        end = BASE_OFFSET + sum(piece.step * piece.times for piece in good)
        self.family.add(
            name,
            "decode",
            result,
            why,
            basis,
            request={"data": {"recipe": recipe, "baseOffset": BASE_OFFSET}, "options": {"crc": True, "summary": True}},
            expect={**more, "summary": sums, "nextOffset": str(end)},
        )


def scale() -> Family:
    """Family 47."""
    family = Family(
        47,
        "scale",
        "Scale: a million records, 64 MiB, hundreds of entries in one answer, runs of odd ones",
        "the recipe",
        flags={
            "SCALE": {
                "effect": "What is right for three batches may take quadratic time, a recursion per batch, or an offset in 32 bits.",
                "links": [],
            },
            "RUN": {
                "effect": "A reader that looks once past an empty batch, or calls itself for the next, loses its way in a run of them.",
                "links": [],
            },
        },
    )
    add = Scale(family)
    _large(add)
    _many(add)
    _runs(add)
    at_scale(family)
    return family


def _large(add: Scale) -> None:
    basis = must("SEG-BAT-001", "SEG-REC-012", flags=("SCALE",), needs=("magic:2",))
    packed = replace(basis, needs=("magic:2", "codec:gzip"))
    add.valid("million-records-in-one-batch", "A million records in one batch.", basis, Made(MILLION))
    why = "A million records in one batch, compressed with gzip."
    add.valid("million-records-in-gzip", why, packed, Made(MILLION, codec="gzip"))
    add.valid("64-mebibytes", "64 batches of a mebibyte.", basis, Made(1024, 64, bytes(range(256)), 4))
    add.valid("one-value-of-16-mebibytes", "One record with a value of 16 MiB.", basis, Made(1, 1, b"abcd", 1 << 22))
    thousand = tuple(Rec(key=b"k%d" % at, value=b"v%d" % at, time=at) for at in range(1000))
    for codec, compress in COMPRESSORS.items():
        batch = Batch(recs=thousand, codec=codec, compress=compress)
        named = replace(basis, needs=("magic:2", f"codec:{codec}"))
        add.valid(f"100-{codec}-batches", "A hundred batches of a thousand records.", named, Repeated((batch,), 100))
    why = "A million records in a thousand batches."
    add.valid("million-records-in-1000-batches", why, basis, Repeated((Batch(recs=thousand),), 1000))


def _many(add: Scale) -> None:
    basis = must("SEG-BAT-001", "SEG-LOG-011", flags=("SCALE",), needs=("magic:2",))
    small = Repeated((Batch(),), 50_000)
    add.valid("50000-batches", "Fifty thousand batches, as producers without linger write them.", basis, small)
    stamped = Batch(attributes=LOG_APPEND_TIME, max_timestamp=5000, recs=(Rec(time=1), Rec(time=2)))
    add.valid("5000-stamped-batches", "Each of 5,000 batches has LogAppendTime.", basis, Repeated((stamped,), 5000))
    for magic, since in ((0, "0.8"), (1, "0.10")):
        old = replace(basis, req=(f"SEG-MSG-00{magic + 1}",), needs=(f"magic:{magic}",), since=since)
        why = "Fifty thousand messages without wrappers."
        add.valid(f"50000-messages-of-magic-{magic}", why, old, Repeated((Msg(magic=magic),), 50_000))
        inner = inner_messages(1000)
        if magic:
            wrapper = Wrapper(offset=999, inner=inner, offsets=tuple(range(1000)), compress=gzip)
            named = replace(old, req=("SEG-MSG-012",), needs=("magic:1", "codec:gzip"))
            add.valid(
                "300-wrappers", "Three hundred wrappers of a thousand messages each.", named, Repeated((wrapper,), 300)
            )
    mixed = replace(basis, req=("SEG-LOG-011",), needs=("magic:0", "magic:1", "magic:2"))
    why = "A log that two upgrades have changed: a thousand entries of each format."
    add.valid("three-formats", why, mixed, *(Repeated((unit,), 1000) for unit in (Msg(magic=0), Msg(magic=1), Batch())))


def _runs(add: Scale) -> None:
    basis = must("SEG-BAT-018", "SEG-BAT-016", flags=("RUN",), needs=("magic:2",))
    good = Repeated((Batch(),), 3)
    ended = replace(basis, req=("SEG-CTL-009",))
    ends = Repeated((replace(marker("COMMIT", 0), base=0),), 5000)
    pairs = Repeated((data(0, b"a", b"b"), marker("COMMIT", 2)), 3000)
    between = Repeated((Batch(), empty(1, 3), marker("ABORT", 5)), 2000)
    for name, why, terms, unit in (
        ("5000-empty-batches", "A run of 5,000 empty batches, as the cleaner leaves them.", basis, Repeated((empty(0, 4),), 5000)),
        ("5000-markers", "A run of 5,000 end markers of transactions without records in this log.", ended, ends),
        ("3000-transactions", "Three thousand transactions, each of two records and a marker.", ended, pairs),
        ("2000-of-each-in-turn", "Batches with records, empty batches and markers alternate, 2,000 of each.", ended, between),
    ):  # fmt: skip
        add.valid(name, why, terms, unit, good)
    whole = Batch().encoded()
    bad = with_field(whole, CRC, int.from_bytes(whole[CRC[0] : CRC[0] + 4], "big") ^ 1, seal=False)
    damaged = Repeated((Batch(),), 1, (bad,))
    add.invalid(
        "damage-behind-20000",
        "A wrong checksum in the last of twenty thousand batches.",
        must("SEG-BAT-003", flags=("SCALE",), needs=("magic:2", "crc")),
        "crc",
        Repeated((Batch(),), 20_000),
        damaged,
        good,
    )


def families() -> list[Family]:
    """All of this module."""
    return [scale()]

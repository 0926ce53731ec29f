"""Cases and the files that they stand in."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from seglog_conformance.releases import release_key

from authoring.batches import Batch
from seglog_format.requirements import requirements

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WIDTH: Final = 118
Json = dict[str, Any]


class Unit(Protocol):
    """An entry of a log that a reader delivers."""

    @property
    def next_offset(self) -> int:
        """The first offset after it."""

    def encoded(self) -> bytes:
        """As it is stored."""

    def answer(self, position: int) -> Json:
        """Return what a reader answers."""

    def follower(self, offset: int | None = None) -> Unit:
        """One more good entry, to see whether a reader gets past this one."""


@dataclass(frozen=True, kw_only=True)
class Basis:
    """What a case says about itself, beside its bytes and its answer.

    Attributes:
        since: the Kafka release from which the case holds, where it is younger than its requirements; else that of the
            youngest of them counts.
        source: what the expected answer rests on.
    """

    req: tuple[str, ...]
    level: str = "must"
    needs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    since: str = "0.11"
    source: str = ""
    smoke: bool = False


def must(*req: str, **rest: Any) -> Basis:  # noqa: ANN401 - fields of Terms
    """Return what concerns interoperability, or loses data."""
    return Basis(req=req, level="must", **rest)


def should(*req: str, **rest: Any) -> Basis:  # noqa: ANN401 - fields of Terms
    """Return what concerns robustness against hostile or odd bytes."""
    return Basis(req=req, level="should", **rest)


def may(*req: str, **rest: Any) -> Basis:  # noqa: ANN401 - fields of Terms
    """Return what is a matter of quality."""
    return Basis(req=req, level="may", **rest)


LAST: Final = Batch().follower(1000)
"""A good batch behind something damaged: far enough that its offset fits wherever it stands."""


def _since(basis: Basis) -> str:
    """Return the release from which all requirements of a case hold, and the case itself."""
    known = requirements()
    return max((basis.since, *(known[name].since for name in basis.req)), key=release_key)


@dataclass
class Family:
    """The cases of one family; the methods add to them."""

    number: int
    name: str
    title: str
    source: str
    flags: dict[str, Json] = field(default_factory=dict)
    cases: list[Json] = field(default_factory=list)

    def add(self, name: str, op: str, result: str, why: str, basis: Basis, **parts: Any) -> None:  # noqa: ANN401
        """Add a case: its request and what is expected."""
        self.cases.append(
            {
                "id": f"{self.name}/{name}",
                "op": op,
                "requirements": list(basis.req),
                "level": basis.level,
                "result": result,
                "needs": sorted(set(basis.needs)),
                "flags": list(basis.flags),
                "why": why,
                "since": _since(basis),
                "source": basis.source or self.source,
                **({"smoke": True} if basis.smoke else {}),
                "request": parts["request"],
                "expect": parts["expect"],
            }
        )

    def valid(
        self,
        name: str,
        why: str,
        basis: Basis,
        *units: Unit | bytes,
        more: bool | Unit = True,
        tail: Json | None = None,
        options: Json | None = None,
    ) -> None:
        """Bytes that a reader has to deliver in full.

        Args:
            name: of the case.
            why: what breaks in practice.
            basis: of the case.
            units: entries; bytes behind them are a tail.
            more: whether another good entry follows, or which.
            tail: what the answer says about the tail.
            options: of the request.
        """
        log = [*units, *_following(units[-1], more)]
        data, answers = lay(log)
        consumed = sum(answer["sizeInBytes"] for answer in answers)
        expect = {"batches": answers, "consumed": consumed, "tail": tail}
        self._decode(name, "valid", why, basis, log, data, options, expect)

    def invalid(
        self,
        name: str,
        why: str,
        basis: Basis,
        reject: str,
        *units: Unit | bytes,
        more: bool | Unit = LAST,
        options: Json | None = None,
        after: int | None = None,
    ) -> None:
        """Bytes that a reader has to refuse where the first unit stands that is plain bytes.

        Args:
            name: of the case.
            why: what breaks in practice.
            basis: of the case.
            reject: the class of the refusal.
            units: entries that may be delivered, then the bytes that are refused.
            more: the good entry that follows, or False.
            options: of the request.
            after: the first record that cannot be handed out, where a consumer is asked again after its error.
        """
        good = units[: next(at for at, unit in enumerate(units) if isinstance(unit, bytes))]
        log = [*units, *_following(units[-1], more)]
        expect: Json = {"reject": {"class": reject}, "batches": lay(good)[1]}
        if after is not None:
            expect["after"] = {"records": [], "position": str(after)}
            options = {**(options or {}), "afterError": True}
        self._decode(name, "invalid", why, basis, log, lay(log)[0], options, expect)

    def survive(self, name: str, why: str, basis: Basis, *units: Unit | bytes, options: Json | None = None) -> None:
        """Bytes about which nothing is asked but that a reader lives through them."""
        self._decode(name, "undefined", why, basis, list(units), lay(units)[0], options, {})

    def either(self, name: str, why: str, basis: Basis, data: bytes, allowed: Sequence[Json]) -> None:
        """Bytes with several right answers, each a ``branch``."""
        self._decode(name, "acceptable", why, basis, [], data, None, {"allowed": list(allowed)})

    def backwards(self, name: str, why: str, basis: Basis, *units: Unit) -> None:
        """Bytes whose offsets do not increase: delivered as they stand, or as a client does that knows its position."""
        log = [*units, units[-1].follower()]
        data, answers = lay(log)
        rest = {"consumed": len(data), "tail": None}
        branches = (("as they stand", answers), ("without what is below the position", above_position(answers)))
        allowed = [{"branch": branch, "batches": batches, **rest} for branch, batches in branches]
        needs = (*basis.needs, *features(log))
        self.either(name, why, replace(basis, needs=needs), data, allowed)

    def _decode(
        self,
        name: str,
        result: str,
        why: str,
        basis: Basis,
        log: Sequence[Unit | bytes],
        data: bytes,
        options: Json | None,
        expect: Json,
    ) -> None:
        needs = {*basis.needs, *features(log)}
        basis = Basis(**{**vars(basis), "needs": tuple(needs)})
        request = {"data": data.hex(), "options": {"crc": True, **(options or {})}}
        self.add(name, "decode", result, why, basis, request=request, expect=expect)

    def document(self) -> Json:
        """Return the content of the family's file."""
        used = {flag for case in self.cases for flag in case["flags"]}
        assert used == set(self.flags), (self.name, used ^ set(self.flags))
        head = {"family": self.number, "name": self.name, "title": self.title}
        return {**head, "flags": self.flags, "cases": self.cases}

    @property
    def file_name(self) -> str:
        """As in ``04-null-header-value.json``."""
        return f"{self.number:02}-{self.name}.json"


def above_position(batches: Sequence[Json]) -> list[Json]:
    """Return the same batches without records below the offset behind the one before (SEG-LKP-003)."""
    position, left = 0, []
    for batch in batches:
        records = []
        for record in batch["records"]:
            if int(record["offset"]) >= position:
                records.append(record)
                position = int(record["offset"]) + 1
        left.append({**batch, "records": records})
    return left


def _following(last: Unit | bytes, more: bool | Unit) -> Iterator[Unit]:  # noqa: FBT001 - which, or whether
    if more is True:
        assert not isinstance(last, bytes)
        yield last.follower()
    elif more is not False:
        yield more


def hexed(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return files as a request or an answer has them."""
    return {name: content.hex() for name, content in files.items()}


def lay(units: Sequence[Unit | bytes]) -> tuple[bytes, list[Json]]:
    """Entries one behind the other, and what a reader answers for each."""
    data, answers = b"", []
    for unit in units:
        if isinstance(unit, bytes):
            data += unit
        else:
            answers.append(unit.answer(len(data)))
            data += unit.encoded()
    return data, answers


def features(log: Sequence[Unit | bytes]) -> set[str]:
    """Return what a reader has to know to read some entries."""
    found = set()
    for answer in lay([unit for unit in log if not isinstance(unit, bytes)])[1]:
        found |= {f"magic:{answer['magic']}", *(f"magic:{rec.get('innerMagic', 2)}" for rec in answer["records"])}
        found |= {f"codec:{answer['codec']}"} - {"codec:none"}
    return found


def written(value: Any, indent: int = 0) -> str:  # noqa: ANN401 - whatever JSON has
    """JSON in lines that are filled as far as they go."""
    text = json.dumps(value, ensure_ascii=True)
    if len(text) + indent <= WIDTH or not isinstance(value, dict | list) or not value:
        return text
    inner = indent + 1
    if isinstance(value, list):
        parts = [written(part, inner) for part in value]
    else:
        parts = [f"{json.dumps(key)}: {written(part, inner)}" for key, part in value.items()]
    pad = "\n" + " " * inner
    opening, closing = "[]" if isinstance(value, list) else "{}"
    return f"{opening}{pad}{_filled(parts, inner, pad)}\n{' ' * indent}{closing}"


def _filled(parts: list[str], indent: int, pad: str) -> str:
    """Short parts share lines, long ones have lines of their own."""
    lines = [parts[0]]
    for part in parts[1:]:
        joined = f"{lines[-1]}, {part}"
        if len(joined) + indent < WIDTH and "\n" not in joined and "{" not in joined:
            lines[-1] = joined
        else:
            lines.append(part)
    return f",{pad}".join(lines)

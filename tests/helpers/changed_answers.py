"""Recorded answers of implementations, changed in one place: what a run under a list of failures has to notice."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_conformance.protocol import Json

SHIFT: Final = 7


class Recorded:
    """An implementation that answers as it was recorded.

    Args:
        said: what it says of itself, and its answers by case.
        changed: makes another answer of each.
    """

    def __init__(self, said: Json, changed: Callable[[Json], Json] = deepcopy) -> None:
        self._said = said
        self._changed = changed

    def hello(self) -> Json:
        return {"ok": True, "protocol": 1, **{name: self._said[name] for name in ("implementation", "ops", "features")}}

    def answer(self, request: Json) -> Json:
        return self._changed(self._said["answers"][request["case"]]["answer"])


def with_another_field(answer: Json, _features: Json) -> Json | None:
    """Give the first record another value."""
    changed = deepcopy(answer)
    record = next(_lists(changed))[0]
    record["value"] = f"{record.get('value') or ''}00"
    return changed


def in_another_order(answer: Json, _features: Json) -> Json | None:
    """Swap two neighbours that are not alike; two batches, where each has one record."""
    changed = deepcopy(answer)
    for items in (*_lists(changed), changed["batches"]):
        if len(items) > 1 and _compared(items[0]) != _compared(items[1]):
            items[0], items[1] = items[1], items[0]
            return changed
    return None


def with_one_record_fewer(answer: Json, _features: Json) -> Json | None:
    """Leave out the last record."""
    changed = deepcopy(answer)
    list(_lists(changed))[-1].pop()
    return changed


def with_an_extra_record(answer: Json, _features: Json) -> Json | None:
    """Repeat the last record."""
    changed = deepcopy(answer)
    records = list(_lists(changed))[-1]
    records.append(deepcopy(records[-1]))
    return changed


def at_a_wrong_position(answer: Json, features: Json) -> Json | None:
    """Change a position: the last offset that a client asked for, that of a batch, or the offset of a record."""
    changed = deepcopy(answer)
    if changed.get("positions") and changed["ok"]:
        changed["positions"][-1] = str(int(changed["positions"][-1]) + SHIFT)
        return changed
    reported = features.get("batchMeta") or ()
    has_positions = reported is True or "position" in reported
    if has_positions and isinstance(changed["batches"][0].get("position"), int):
        changed["batches"][0]["position"] += SHIFT
    else:
        record = next(_lists(changed))[0]
        record["offset"] = str(int(record["offset"]) + SHIFT)
    return changed


CHANGES: Final = (
    with_another_field,
    in_another_order,
    with_one_record_fewer,
    with_an_extra_record,
    at_a_wrong_position,
)


def _lists(answer: Json) -> Any:  # noqa: ANN401 - an iterator over lists inside of the answer
    """Yield the records of each batch that has some."""
    return (batch["records"] for batch in answer["batches"] if batch["records"])


def _compared(item: Json) -> Json:
    """Return what is compared of a record or batch in any case."""
    records = item.get("records", [item])
    return {"records": [{name: one.get(name) for name in ("offset", "key", "value")} for one in records]}

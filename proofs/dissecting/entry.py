"""An entry of a log as fields with the same names for every reader, and the differences between two readings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Entry:
    """A batch or a message with its records or messages; or a record.

    Attributes:
        fields: by name. Times are milliseconds, keys and values bytes or None, headers pairs of such.
        items: the records of a batch, or the messages of a wrapper.
        circumstances: values that may explain a difference; they are not compared.
    """

    fields: Mapping[str, Any]
    items: Sequence[Entry] = ()
    circumstances: Mapping[str, Any] = field(default_factory=dict)


class Difference(NamedTuple):
    """A field that differs between two readings.

    Attributes:
        name: of the field, or ``items`` for their count.
        ours, theirs: the values; None where it was not read at all.
        entries: ours and theirs.
        kind: ``entry``, or ``item`` for a record or message in it.
    """

    name: str
    ours: Any
    theirs: Any
    entries: tuple[Entry, Entry]
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: ours {_shortened(self.ours)}, theirs {_shortened(self.theirs)}"


def _shortened(value: object, most: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def differences(ours: Entry, theirs: Entry, kind: str = "entry") -> Iterator[Difference]:
    """Yield every field that differs, of the entry and of its records or messages in order."""
    for name, value in ours.fields.items():
        if name not in theirs.fields or theirs.fields[name] != value:
            yield Difference(name, value, theirs.fields.get(name), (ours, theirs), kind)
    if len(ours.items) != len(theirs.items):
        yield Difference("items", len(ours.items), len(theirs.items), (ours, theirs), kind)
    else:
        for mine, other in zip(ours.items, theirs.items, strict=True):
            yield from differences(mine, other, "item")

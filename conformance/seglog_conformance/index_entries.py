"""Differences of index and checkpoint files, as entries and lines instead of hex."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from seglog_format.layouts import OFFSET_INDEX_ENTRY_LAYOUT, TIME_INDEX_ENTRY_LAYOUT, TRANSACTION_INDEX_ENTRY_LAYOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seglog_format.packing import FixedLayout

LAYOUTS: Final[Mapping[str, FixedLayout]] = {
    ".index": OFFSET_INDEX_ENTRY_LAYOUT,
    ".timeindex": TIME_INDEX_ENTRY_LAYOUT,
    ".txnindex": TRANSACTION_INDEX_ENTRY_LAYOUT,
}
LINES: Final = ("-checkpoint", "partition.metadata", "meta.properties")
"""Ends of names of text files."""


def file_difference(path: str, expected: object, found: object) -> tuple[str, str, str] | None:
    """Return the first difference of two files as path, expected and found entry; None for a file without entries.

    Args:
        path: path of the difference, which ends in the name of the file.
        expected: hex of the file.
        found: hex of another file, or a word if there is none.
    """
    parse = _parser(path)
    data = _bytes(expected)
    if parse is None or data is None:
        return None
    entries, other = parse(data), _bytes(found)
    if other is None:
        return path, f"a file of {_counted(entries)}", str(found)
    others = parse(other)
    pairs = enumerate(zip_longest(entries, others, fillvalue="no entry"), 1)
    number, (one, another) = next((item for item in pairs if item[1][0] != item[1][1]), (1, ("no entry", "no entry")))
    name = f"{path} entry {number} ({len(entries)} expected, {len(others)} found)"
    return name, one, another


def entries_of(name: str, data: bytes) -> list[str]:
    """Return the entries of an index, or the lines of a text file; nothing for any other file.

    Args:
        name: name of the file.
        data: content of the file.
    """
    parse = _parser(name)
    return parse(data) if parse is not None else []


def _counted(entries: Sequence[str]) -> str:
    return f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}{f', first {entries[0]}' if entries else ''}"


def _parser(path: str) -> Callable[[bytes], list[str]] | None:
    if path.endswith(LINES):
        return lambda data: data.decode("utf-8", "backslashreplace").splitlines()
    layout = next((layout for suffix, layout in LAYOUTS.items() if path.endswith(suffix)), None)
    return None if layout is None else lambda data: _entries(layout, data)


def _entries(layout: FixedLayout, data: bytes) -> list[str]:
    """Return each entry as text, and bytes after the last whole one as hex."""
    whole = len(data) - len(data) % layout.size
    packer = layout.packer(*layout.codes)
    stored = (packer.unpack_from(data, start) for start in range(0, whole, layout.size))
    entries = [
        ", ".join(f"{name} {value}" for name, value in zip(layout.codes, values, strict=True)) for values in stored
    ]
    return [*entries, *([f"bytes {data[whole:].hex()}"] if data[whole:] else [])]


def _bytes(value: object) -> bytes | None:
    try:
        return bytes.fromhex(value) if isinstance(value, str) else None
    except ValueError:
        return None

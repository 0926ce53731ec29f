"""Write `seglog_format/layouts.py` from the declarations in `seglog_format/schema`; with ``--check``, only compare.

A reader of an entry's fixed fields must not load construct, which takes longer than reading a small log. So the layouts
are stored as plain values. The tests fail when the file is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from construct import FormatField, Renamed

from seglog_format.cli.structures import structures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from construct import Struct

TARGET = Path(__file__).resolve().parent.parent / "seglog_format" / "layouts.py"

STRUCTURES: Final = {
    "ENTRY_PREFIX": "EntryPrefix",
    "RECORD_BATCH_HEADER": "RecordBatchHeader",
    "MESSAGE_V0_HEADER": "MessageV0Header",
    "MESSAGE_V1_HEADER": "MessageV1Header",
    "BYTES_LENGTH": "BytesLength",
    "CONTROL_RECORD_KEY": "ControlRecordKey",
    "END_TRANSACTION_MARKER": "EndTransactionMarker",
    "OFFSET_INDEX_ENTRY": "OffsetIndexEntry",
    "TIME_INDEX_ENTRY": "TimeIndexEntry",
    "TRANSACTION_INDEX_ENTRY": "TransactionIndexEntry",
    "PRODUCER_SNAPSHOT_HEADER": "ProducerSnapshotHeader",
    "PRODUCER_STATE_ENTRY": "ProducerStateEntry",
}
"""The declared structure of each layout."""
LINE: Final = 120

HEAD = '''"""The fixed layouts, in stored order. Made by ``python -m tools.make_layouts`` from the declarations."""

from __future__ import annotations

from typing import Final

from seglog_format.packing import FixedLayout
'''


def module_text(codes: Mapping[str, Mapping[str, str]]) -> str:
    """Return the module's text.

    Args:
        codes: for each layout, the code of `struct` for each field in stored order.
    """
    return HEAD + "".join(f"\n{_layout(name, fields)}" for name, fields in codes.items()) + "\n"


def _layout(name: str, fields: Mapping[str, str]) -> str:
    """Return a layout as the formatter writes it: in one line, with its fields in one, or with a line for each."""
    start, rows = f"{name}_LAYOUT: Final = FixedLayout(", [f'{field}="{code}"' for field, code in fields.items()]
    short = ", ".join(rows)
    if len(start) + len(short) < LINE:
        return f"{start}{short})"
    return (
        f"{start}\n    {short}\n)"
        if len(short) + 4 <= LINE
        else start + "".join(f"\n    {row}," for row in rows) + "\n)"
    )


def declarations() -> dict[str, Struct]:
    """Return the declaration of each layout."""
    declared = {structure.name: structure.declaration for structure in structures()}
    return {layout: declared[name] for layout, name in STRUCTURES.items()}


def declared_codes() -> dict[str, dict[str, str]]:
    """Return the codes of all layouts, as declared."""
    return {name: field_codes(declaration) for name, declaration in declarations().items()}


def field_codes(declaration: Struct) -> dict[str, str]:
    """Return the `struct` code for each field of a declaration of big-endian numbers, in stored order.

    Raises:
        TypeError: a field is not a big-endian number of fixed size.
    """
    codes = {}
    for field in declaration.subcons:
        inner = field
        while isinstance(inner, Renamed):
            inner = inner.subcon
        if not isinstance(inner, FormatField) or inner.fmtstr[0] != ">":
            msg = f"{field.name} is not a big-endian number of fixed size"
            raise TypeError(msg)
        codes[field.name] = inner.fmtstr[1:]
    return codes


def main() -> int:
    """Write the module, or compare it with the declarations."""
    text = module_text(declared_codes())
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    if TARGET.read_text(encoding="utf-8") == text:
        return 0
    print(f"{TARGET.name} is out of date: run python -m tools.make_layouts")
    return 1


if __name__ == "__main__":
    sys.exit(main())

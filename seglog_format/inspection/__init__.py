"""The fields of a file with the bytes that hold them, as ``seglog inspect`` shows them.

`inspect_file` and `inspect_pasted` return an `Inspection`: blocks of bytes, each with its fields in stored order.
Decompressed content is a block of its own.
"""

from __future__ import annotations

from seglog_format.inspection.entries import Block, Field, Inspection
from seglog_format.inspection.files import Selection, inspect_file, inspect_pasted, pasted_bytes

__all__ = ["Block", "Field", "Inspection", "Selection", "inspect_file", "inspect_pasted", "pasted_bytes"]

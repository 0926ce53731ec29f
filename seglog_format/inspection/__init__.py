"""Fields and the bytes they stand in, for people who want to see: what ``seglog inspect`` shows.

`inspect_file` and `inspect_pasted` answer an `Inspection`: blocks of bytes, each with its fields in stored order.
What a batch holds compressed is a block of its own.
"""

from __future__ import annotations

from seglog_format.inspection.fields import Block, Field, Inspection
from seglog_format.inspection.files import Selection, inspect_file, inspect_pasted
from seglog_format.inspection.pasted import pasted_bytes

__all__ = ["Block", "Field", "Inspection", "Selection", "inspect_file", "inspect_pasted", "pasted_bytes"]

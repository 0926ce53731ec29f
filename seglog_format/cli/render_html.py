"""One HTML page with fields and bytes: no server, no network, only this file.

The page carries its data as JSON and draws one page of bytes at a time, so a file of a megabyte is as fast as a
batch. Text from files is only ever put into the page as text, never as markup.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from seglog_format.cli.output import printable
from seglog_format.cli.render_inspect import value_text
from seglog_format.field_names import kafka_name
from seglog_format.requirements import requirements

if TYPE_CHECKING:
    from seglog_format.inspection import Block, Field, Inspection

TITLE_MARK: Final = "$TITLE$"
DATA_MARK: Final = "$DATA$"
MAX_PLAIN_SIZE: Final = 1 << 18
"""Maximum characters of uncompressed data in a page; browsers before 2023 cannot decompress more."""


def page(inspection: Inspection) -> str:
    """Return the whole page as text."""
    content = _Content(inspection)
    template = files("seglog_format.cli").joinpath("page.html").read_text(encoding="utf-8")
    before_title, after_title = template.split(TITLE_MARK)
    before_data, after_data = after_title.split(DATA_MARK)
    return before_title + escape(content.title) + before_data + packed(content.json_text()) + after_data


def packed(text: str) -> str:
    """Return JSON unchanged, or Base64 of its deflated bytes if it is long; the page's script distinguishes them."""
    if len(text) <= MAX_PLAIN_SIZE:
        return text
    return b64encode(zlib.compress(text.encode("ascii"))).decode("ascii")


class _Content:
    """The data for the page's script; repeated texts are stored once."""

    def __init__(self, inspection: Inspection) -> None:
        self.names: dict[str, int] = {}
        self.docs: dict[tuple[str, tuple[str, ...]], int] = {}
        self.blocks = [self._block(block) for block in inspection.blocks]
        self.title = printable(inspection.title)
        self.remark = printable(inspection.remark)

    def _block(self, block: Block) -> dict[str, Any]:
        return {
            "title": printable(block.title),
            "position": block.position,
            "derived": block.is_derived,
            "problems": [printable(problem) for problem in block.problems],
            "data": b64encode(block.data).decode("ascii"),
            "fields": [self._field(field) for field in block.fields],
        }

    def _field(self, field: Field) -> list[Any]:
        """Return name, start, size, depth, value, note, documentation, and whether it is a group (1) or wrong (2)."""
        doc = (field.doc, field.requirements)
        row: list[Any] = [
            self.names.setdefault(kafka_name(field.name), len(self.names)),
            field.start,
            field.end - field.start,
            field.depth,
            self.docs.setdefault(doc, len(self.docs)),
            int(field.is_group) + 2 * field.failed,
            value_text(field),
            printable(field.note),
        ]
        while row[-1] == "":
            row.pop()
        return row

    def json_text(self) -> str:
        """Return everything as JSON that is safe inside a script element."""
        known = requirements()
        used = sorted({identifier for _, ids in self.docs for identifier in ids if identifier in known})
        value = {
            "title": self.title,
            "remark": self.remark,
            "names": list(self.names),
            "docs": [[doc, list(ids)] for doc, ids in self.docs],
            "requirements": {identifier: [known[identifier].level, known[identifier].text] for identifier in used},
            "blocks": self.blocks,
        }
        return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")

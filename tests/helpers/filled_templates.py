"""Templates of adapters that tests fill in: with the public API in Python, elsewhere with a library of a few lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from click.testing import CliRunner

from helpers.support import REPOSITORY
from seglog_format.cli.main import seglog

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LIBRARIES: Final = REPOSITORY / "tests" / "template_libraries"


class Library(NamedTuple):
    """What fills in a template.

    Attributes:
        source: name of the template's source.
        library: name of the file that is put beside it.
        wrong: for each operation, a text of the library and what makes it wrong.
    """

    source: str
    library: str
    wrong: dict[str, tuple[str, str]]


FILLED: Final = {
    "go": Library(
        "main.go",
        "library.go",
        {"encode": ("crc32.Castagnoli", "crc32.IEEE"), "index": ("last-baseOffset", "last-baseOffset+1")},
    ),
    "java": Library(
        "Adapter.java",
        "Library.java",
        {"encode": ("CRC32C", "CRC32"), "index": ("last - baseOffset", "last - baseOffset + 1")},
    ),
    "javascript": Library(
        "adapter.mjs",
        "library.mjs",
        {"encode": ("0x82f63b78", "0xedb88320"), "index": ("last - baseOffset", "last - baseOffset + 1n")},
    ),
    "python": Library(
        "adapter.py",
        "your_library.py",
        {
            "encode": ("encode_batch(build_batch", "bytes(61) + encode_batch(build_batch"),
            "index": (".read_bytes()", ".read_bytes()[8:]"),
        },
    ),
    "rust": Library(
        "src/main.rs",
        "library.rs",
        {"encode": ("0x82f6_3b78", "0xedb8_8320"), "index": ("last - base_offset", "last - base_offset + 1")},
    ),
}


def written(language: str, adapter: Path, ops: Sequence[str], wrong: Sequence[str] = ()) -> None:
    """Write what ``conform new`` writes, filled in for some operations.

    Args:
        language: language of the template.
        adapter: directory to write.
        ops: operations that are filled in.
        wrong: those of them that answer wrongly.
    """
    done = CliRunner().invoke(seglog, ["conform", "new", language, str(adapter)])
    assert done.exit_code == 0, done.output
    library = FILLED[language]
    source = adapter / library.source
    text = (LIBRARIES / library.library).read_text(encoding="utf-8")
    for op in wrong:
        right, other = library.wrong[op]
        assert right in text
        text = text.replace(right, other)
    beside = source.with_name(library.library)
    if language == "go":
        names = {"encode": "encoded", "index": "indexed", "lookup": "found"}
        start = f"{', '.join(ops)} = {', '.join(names[op] for op in ops)}"
        beside.write_text(text.replace("encode, index, lookup = encoded, indexed, found", start), encoding="utf-8")
    else:
        beside.write_text(text, encoding="utf-8")
        source.write_text(_called(language, source.read_text(encoding="utf-8"), ops), encoding="utf-8")
    _build_without_a_library(adapter / "adapter.toml")


def _called(language: str, text: str, ops: Sequence[str]) -> str:
    """Return a template's source that calls the library for some operations."""
    if language == "python":
        table = ", ".join(f'"{op}": {op}' for op in ops)
        return re.sub(r"^OPERATIONS = .*$", f"OPERATIONS = {{{table}}}", text, flags=re.MULTILINE)
    for op in ops:
        empty, called = {
            "java": (rf"( {op.upper()} =) null;", rf"\1 Library::{op};"),
            "javascript": (rf"^const {op} = null;", f"const {op} = library.{op}{'' if op == 'lookup' else '(Skip)'};"),
            "rust": (rf"^(const {op.upper()}: .* =) None;", rf"\1 Some(library::{op});"),
        }[language]
        text, count = re.subn(empty, called, text, count=1, flags=re.MULTILINE)
        assert count == 1, (language, op)
    if ops and language == "rust":
        return text.replace("\nuse ", "\nmod library;\nuse ", 1)
    return 'import * as library from "./library.mjs";\n' + text if ops and language == "javascript" else text


def _build_without_a_library(description: Path) -> None:
    """Take the published library out of a description; the Python that runs the tests has the one in Python."""
    text = description.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "your-library@" not in line and "pip" not in line]
    text = "\n".join(lines).replace('["python3", "-m", "venv", "{build}/venv"],', "")
    description.write_text(text.replace("{build}/venv/bin/python", "{python}") + "\n", encoding="utf-8")


def written_storage(adapter: Path, wrong: tuple[str, str] = ("", "")) -> None:
    """Write the template of a storage over the public API.

    Args:
        adapter: directory to write.
        wrong: a text of what it calls, and what makes it wrong.
    """
    written("python", adapter, ["decode"])
    description = adapter / "adapter.toml"
    description.write_text(
        description.read_text(encoding="utf-8").replace("adapter.py", "storage.py"), encoding="utf-8"
    )
    text = (LIBRARIES / "your_storage.py").read_text(encoding="utf-8")
    assert wrong[0] in text
    (adapter / "your_storage.py").write_text(text.replace(*wrong) if wrong[0] else text, encoding="utf-8")

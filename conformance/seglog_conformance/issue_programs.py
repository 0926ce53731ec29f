"""About ten lines in the language of a library that hold the bytes of a case, for a report to its maintainers.

The lines that call the library are the `lines` of the `bugs.toml` of its adapter; without them a line marks the place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

LINE: Final = 96
"""Number of hexadecimal digits in a line."""


class Language(NamedTuple):
    """How programs of a language hold bytes.

    Attributes:
        name: name of the language in a fenced block of Markdown.
        program: the program, with ``{imports}``, ``{bytes}`` and ``{call}``.
        piece: one line of bytes, with ``{hex}`` or ``{escaped}``.
        between: text between the lines of bytes.
        call: line in place of the library's own calls, with ``{what}``.
    """

    name: str
    program: str
    piece: str
    between: str
    call: str


PYTHON: Final = Language(
    "python",
    "{imports}data = bytes.fromhex(\n{bytes}\n)\n{call}\n",
    '    "{hex}"',
    "\n",
    "print(library.read(data))  # in place of this line: the library's call that {what}",
)
JAVASCRIPT: Final = Language(
    "javascript",
    '{imports}const data = Buffer.from([\n{bytes}\n].join(""), "hex");\n{call}\n',
    '  "{hex}",',
    "\n",
    "console.log(library.read(data)); // in place of this line: the library's call that {what}",
)
GO: Final = Language(
    "go",
    'package main\n\nimport (\n\t"encoding/hex"\n\t"fmt"\n{imports})\n\nfunc main() {{\n'
    '\tdata, _ := hex.DecodeString("" +\n{bytes})\n{call}\n}}\n',
    '\t\t"{hex}"',
    " +\n",
    "\tfmt.Println(library.Read(data)) // in place of this line: the library's call that {what}",
)
JAVA: Final = Language(
    "java",
    "{imports}public class Case {{\n    public static void main(String[] arguments) throws Exception {{\n"
    '        byte[] data = java.util.HexFormat.of().parseHex(""\n{bytes});\n{call}\n    }}\n}}\n',
    '            + "{hex}"',
    "\n",
    "        System.out.println(Library.read(data)); // in place of this line: the library's call that {what}",
)
RUST: Final = Language(
    "rust",
    '{imports}fn main() {{\n    let data: &[u8] = b"\\\n{bytes}";\n{call}\n}}\n',
    "{escaped}",
    "\\\n",
    '    println!("{{:?}}", library::read(data)); // in place of this line: the library\'s call that {what}',
)
C: Final = Language(
    "c",
    "#include <stdio.h>\n{imports}\nint main(void) {{\n    static const unsigned char data[] =\n{bytes};\n"
    "    const size_t size = sizeof data - 1;\n{call}\n}}\n",
    '        "{escaped}"',
    "\n",
    '    printf("%d\\n", library_read(data, size)); /* in place of this line: the library\'s call that {what} */',
)
PLAIN: Final = Language("text", "{bytes}\n\n{call}\n", "{hex}", "\n", "Give this to the library's call that {what}.")

LANGUAGES: Final[Mapping[str, Language]] = {
    "python": PYTHON,
    "cython": PYTHON,
    "javascript": JAVASCRIPT,
    "typescript": JAVASCRIPT,
    "go": GO,
    "java": JAVA,
    "kotlin": JAVA,
    "scala": JAVA,
    "rust": RUST,
    "c": C,
    "c++": C,
}


def program(language: str, data: bytes, *, what: str, calls: str = "", imports: str = "") -> str:
    """Return a program that holds bytes and gives them to a library, as a fenced block of Markdown.

    Args:
        language: declared language of the library; an unknown one gets the bytes and a sentence.
        data: the bytes.
        what: what the library's call does, such as ``reads record batches``.
        calls: lines that give ``data`` to the library; empty for a line that marks the place.
        imports: lines that these need before all others.
    """
    found = LANGUAGES.get(language.lower(), PLAIN)
    text = data.hex()
    rows = [text[start : start + LINE] for start in range(0, len(text), LINE)] or [""]
    pieces = (found.piece.format(hex=row, escaped=_escaped(row)) for row in rows)
    call = calls.rstrip("\n") or found.call.format(what=what)
    end = "\n" if found in {GO, C} else "\n\n"
    before = imports.rstrip("\n") + end if imports else ""
    body = found.program.format(imports=before, bytes=found.between.join(pieces), call=call)
    return f"```{found.name}\n{body}```"


DIRECTORY: Final = "topic-0"
FILES: Final = """\
```sh
mkdir {directory}
{files}
```

```{name}
{call}
```"""


def call_program(language: str, files: Mapping[str, bytes], *, what: str, calls: str = "") -> str:
    """Return how to make the files of a partition, and the line that calls the library, as Markdown.

    Args:
        language: declared language of the library.
        files: contents by name; if there are none, the call is given the parameters of the case.
        what: what the library's call does.
        calls: lines that give the path ``directory`` to the library; empty for a line that marks the place.
    """
    found = LANGUAGES.get(language.lower(), PLAIN)
    argument = f'"{DIRECTORY}"' if files else "parameters"
    marked = found.call.format(what=what).strip()
    call = calls.rstrip("\n") or marked.replace("(data, size)", f"({argument})").replace("(data)", f"({argument})")
    if not files:
        return f"```{found.name}\n{call}\n```"
    made = (f"echo {data.hex()} | xxd -r -p > {DIRECTORY}/{name}" for name, data in files.items())
    return FILES.format(directory=DIRECTORY, files="\n".join(made), name=found.name, call=call)


SERVED: Final = """\
Serve the bytes as partition 0 of the topic `case`, and read that with the program below:

```sh
mkdir -p logs/case-0
echo HEX | xxd -r -p > logs/case-0/00000000000000000000.log
seglog serve --raw --state none logs
```

```{name}
{program}
```"""


def client_program(language: str, text: str) -> str:
    """Return how to serve the bytes of a log, and a program that reads them with a whole client, as Markdown.

    Args:
        language: declared language of the library.
        text: the program.
    """
    return SERVED.format(name=LANGUAGES.get(language.lower(), PLAIN).name, program=text.rstrip("\n"))


def _escaped(row: str) -> str:
    return "".join(f"\\x{row[at : at + 2]}" for at in range(0, len(row), 2))

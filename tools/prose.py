"""Check the pages and docstrings with Vale, by the substitutions of `tools.wording`. ``make prose`` runs it.

`tools.tidy` looks for the same turns of phrase. Vale parses Markdown and Python itself, comments included, and also
finds repeated words and sentences that are too long. It is one Go program, which is built once into ``build/``. If
neither Vale nor Go works, nothing is checked, and a line says so.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

from seglog_conformance.toolchains import child_processes

from tools.tidy import REPOSITORY, tracked_files
from tools.wording import GENERATED, IN_CODE, PAGES, PLAINER, REPEATED

if TYPE_CHECKING:
    from collections.abc import Mapping

HOME: Final = REPOSITORY / "build" / "vale"
MODULE: Final = "github.com/errata-ai/vale/v3/cmd/vale@v3.17.0"
BUILD_SECONDS: Final = 600
WORDS_IN_SENTENCE: Final = 60
SETTINGS: Final = """StylesPath = styles
MinAlertLevel = warning
[*.md]
BasedOnStyles = Pages
BlockIgnores = (?m)^::: .*$, (?m)^\\[SEG-[A-Z]{3}-\\d{3}\\]: .*$
[*.py]
BasedOnStyles = Docstrings
"""
REPETITION: Final = """extends: repetition
message: "'%s' is repeated"
level: error
alpha: true
tokens:
  - '[^\\s]+'
"""
LENGTH: Final = f"""extends: occurrence
message: "a sentence of more than {WORDS_IN_SENTENCE} words"
level: error
scope: sentence
max: {WORDS_IN_SENTENCE}
token: '\\b\\w+\\b'
"""


def main() -> int:
    """Check the pages and the docstrings.

    Returns:
        The exit status of Vale; 0 without Vale.
    """
    program = vale()
    if program is None:
        return 0
    write_styles()
    return child_processes.run([*command(program), *read()], directory=REPOSITORY, check=False).returncode


def command(program: str) -> list[str]:
    """Return the command of Vale, without the files to read."""
    return [program, "--config", str(HOME / ".vale.ini"), "--output", "line"]


def vale() -> str | None:
    """Return the program, built if necessary; None, with a line on standard error, if that fails."""
    found = child_processes.find_program("vale") or child_processes.find_program("vale", path=str(HOME / "bin"))
    if found:
        return found
    go = child_processes.find_program("go")
    if go is None:
        print("skipped: neither Vale nor Go, which builds it, is installed; tools.tidy checks the same words")
        return None
    built = child_processes.run(
        [go, "install", MODULE],
        directory=child_processes.NOWHERE,
        changes={"GOBIN": str(HOME / "bin")},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if built.returncode != 0:
        print(f"skipped: Vale could not be built; tools.tidy checks the same words. {built.stderr.strip()[-300:]}")
        return None
    return str(HOME / "bin" / "vale")


def write_styles() -> None:
    """Write the styles and the settings; JSON is YAML."""
    for name, phrases in (("Pages", PLAINER), ("Docstrings", IN_CODE)):
        style = HOME / "styles" / name
        style.mkdir(parents=True, exist_ok=True)
        (style / "Plainer.yml").write_text(json.dumps(substitution(phrases), indent=1), encoding="utf-8")
    for rule, text in (("Repetition", REPETITION), ("Length", LENGTH)):
        (HOME / "styles" / "Pages" / f"{rule}.yml").write_text(text, encoding="utf-8")
    (HOME / ".vale.ini").write_text(SETTINGS, encoding="utf-8")


def substitution(phrases: Mapping[str, str]) -> dict[str, object]:
    """Return the rule of Vale for turns of phrase."""
    return {
        "extends": "substitution",
        "message": "write '%s' instead of '%s'",
        "level": "error",
        "ignorecase": True,
        "swap": dict(phrases),
    }


def read() -> list[str]:
    """Return the pages and modules that Vale reads: those of `tools.wording`, except those that repeat other text."""
    names = [path.relative_to(REPOSITORY).as_posix() for path in tracked_files(REPOSITORY)]
    pages = [name for name in names if name.startswith(PAGES) and not name.startswith(REPEATED)]
    texts = [name for name in pages if name.endswith(".md")]
    written = [name for name in texts if GENERATED not in (REPOSITORY / name).read_text(encoding="utf-8")]
    return written + [name for name in names if name.startswith("seglog_format/") and name.endswith(".py")]


if __name__ == "__main__":
    sys.exit(main())

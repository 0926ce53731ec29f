"""Options shared by several ``seglog conform`` commands, and the testees and cases that they select."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.options import PATH
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from seglog_conformance.cases import Case
    from seglog_conformance.registry import Adapter, Builder, Listed

TESTEE_HELP: Final = (
    "A testee; may be repeated. Without --testee and --adapter, all commands but smoke ask every testee, and build the"
    " suite's adapters first: that downloads their libraries and takes minutes."
)

BUILD_HELP: Final = "Where adapters are built; by default in this user's cache."


def testee_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select testees."""
    options = (
        click.option("--testee", "testees", multiple=True, metavar="NAME", help=TESTEE_HELP),
        click.option(
            "--adapter",
            "directories",
            multiple=True,
            type=PATH,
            help="A directory with an adapter.toml; may be repeated.",
        ),
        click.option(
            "--version", default="", help="Version of the implementations; by default the first of each adapter.toml."
        ),
        click.option("--build", type=PATH, help=BUILD_HELP),
        click.option("--rebuild", is_flag=True, help="Build again what has been built before."),
        click.option("--strict", is_flag=True, help="Validate every line of the protocol by its schema."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def case_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select cases."""
    options = (
        click.option("--case", "patterns", multiple=True, metavar="ID", help="A case; * matches anything."),
        click.option("--family", "families", multiple=True, metavar="FAMILY", help="Number or name of a family."),
        click.option("--cases", "case_paths", multiple=True, type=PATH, help="Files of cases instead of the suite's."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def wanted(testees: Sequence[str], directories: Sequence[Path], version: str) -> list[Listed]:
    """Return the selected testees: all, if none is named."""
    from seglog_conformance.registry import DIRECT, IN_PROCESS, adapters, listed

    names = [*testees, *(str(directory.absolute()) for directory in directories)]
    suffix = f"@{version}" if version else ""
    names = names or [*DIRECT, *(label for adapter in adapters() for label in _asked(adapter, suffix))]
    return [listed(name if "@" in name or name in IN_PROCESS else name + suffix) for name in names]


def one_wanted(options: dict[str, Any], purpose: str) -> Listed:
    """Return the one testee that `testee_options` select.

    Raises:
        UsageError: none is selected, or several; the message begins with the purpose.
    """
    found = wanted(options["testees"], options["directories"], options["version"])
    if len(found) != 1:
        msg = f"{purpose} one testee: name it by --testee or by --adapter"
        raise UsageError(msg)
    return found[0]


def builder_of(options: dict[str, Any]) -> Builder:
    """Return the builder of testees that `testee_options` describe."""
    from seglog_conformance.registry import Builder

    return Builder(options["build"], strict=options["strict"], rebuild=options["rebuild"])


def _asked(adapter: Adapter, suffix: str) -> list[str]:
    """Return the testees of an adapter: of the given version, else of the versions that its adapter.toml asks for."""
    return [adapter.name] if suffix else [f"{adapter.name}@{version}" for version in adapter.asked]


def chosen(
    patterns: Sequence[str], families: Sequence[str], case_paths: Sequence[Path], *, with_scale: bool = False
) -> tuple[list[Case], list[Case]]:
    """Return the selected cases, and all cases.

    Args:
        patterns: patterns of ids.
        families: numbers or names.
        case_paths: files of cases instead of the suite's.
        with_scale: whether all cases, if nothing is named, include the family ``scale``, which takes minutes.
    """
    from seglog_conformance.cases import case_files, load_cases, scale_directory, selected

    files = [file for path in case_paths for file in (case_files(path) if path.is_dir() else [path])]
    usual = load_cases(files or None)
    large = [] if files else load_cases(scale_directory())
    for text in families:
        if not selected([*usual, *large], [text]):
            raise UsageError(_no_family(text, [*usual, *large]))
    named = [*patterns, *families]
    cases = selected([*usual, *large], named) if named else [*usual, *(large if with_scale else ())]
    if not cases:
        msg = "no case matches"
        raise UsageError(msg)
    return cases, [*usual, *large]


def _no_family(text: str, cases: Sequence[Case]) -> str:
    """Return the message that there is no such family, with families of similar names, or with all."""
    names = list(dict.fromkeys(case.family_name for case in cases))
    alike = get_close_matches(text, names)
    suggestion = f"is it {' or '.join(alike)}?" if alike else f"the families are {', '.join(names)}"
    return f"no family {text!r}; {suggestion}"

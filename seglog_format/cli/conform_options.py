"""Options shared by several ``seglog conform`` commands, and the testees and cases that they select."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.options import PATH
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.registry import Adapter, Listed


def testee_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select testees."""
    options = (
        click.option("--testee", "testees", multiple=True, metavar="NAME", help="A testee; may be repeated."),
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
        click.option("--build", type=PATH, default=Path("build/conform"), help="Where adapters are built."),
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
    from seglog_conformance.registry import DIRECT, adapters, listed

    names = [*testees, *(str(directory) for directory in directories)]
    suffix = f"@{version}" if version else ""
    names = names or [*DIRECT, *(label for adapter in adapters() for label in _asked(adapter, suffix))]
    return [listed(name if "@" in name or name in DIRECT else name + suffix) for name in names]


def _asked(adapter: Adapter, suffix: str) -> list[str]:
    """Return the testees of an adapter that is not named: those of a version, or those that it wants asked."""
    return [adapter.name] if suffix else [f"{adapter.name}@{version}" for version in adapter.asked]


def chosen(
    patterns: Sequence[str], families: Sequence[str], case_paths: Sequence[Path]
) -> tuple[list[Case], list[Case]]:
    """Return the selected cases, and all that are like them: cases of scale and generated ones have to be named."""
    from seglog_conformance.cases import case_files, load_cases, selected

    files = [file for path in case_paths for file in (case_files(path) if path.is_dir() else [path])]
    every = load_cases(files or None)
    cases = selected(every, [*patterns, *families])
    for others in NAMED.values() if not files else ():
        if not cases:
            every = others()
            cases = selected(every, [*patterns, *families])
    if not cases:
        msg = "no case fits"
        raise UsageError(msg)
    return cases, every


def _of_scale() -> list[Case]:
    from seglog_conformance.cases import load_cases, scale_directory

    return load_cases(scale_directory())


def _generated() -> list[Case]:
    """Return the cases that a fixed seed draws; none where Hypothesis is not installed."""
    try:
        from seglog_conformance.partitions import sample
    except ImportError:
        return []
    return sample()


NAMED: Final[dict[str, Callable[[], list[Case]]]] = {"scale": _of_scale, "generated": _generated}
"""Families that a run asks only where it names them, with lists of known failures of their own."""

"""``seglog conform new``: an adapter to begin with."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import click

from seglog_format.cli.options import PATH
from seglog_format.cli.output import diagnose
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGES = ("go", "java", "javascript", "python", "rust")


@click.command()
@click.argument("language", type=click.Choice(LANGUAGES))
@click.argument("directory", type=PATH)
def new(language: str, directory: Path) -> None:
    """Copy the adapter template of LANGUAGE into DIRECTORY, a new one.

    It speaks the protocol and answers nothing yet: its comments say what to change, and `seglog conform smoke
    --adapter DIRECTORY` whether it works.
    """
    from seglog_conformance.places import part

    if directory.exists():
        msg = f"{directory} exists"
        raise UsageError(msg)
    try:
        shutil.copytree(part("templates") / language, directory, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:
        msg = f"{directory} cannot be made: {error.strerror or error}"
        raise UsageError(msg) from error
    names = ", ".join(sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()))
    diagnose(f"wrote {names}")
    diagnose(f"next: seglog conform smoke --adapter {directory}")

"""``seglog conform new``: a new adapter from a template."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import click

from seglog_format.cli.options import PATH, epilog_of
from seglog_format.cli.output import diagnose
from seglog_format.errors import UsageError, write_errors

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGES = ("go", "java", "javascript", "python", "rust")


@click.command(epilog=epilog_of("conform new"))
@click.argument("language", type=click.Choice(LANGUAGES))
@click.argument("directory", type=PATH)
def new(language: str, directory: Path) -> None:
    """Copy the adapter template of LANGUAGE into DIRECTORY, a new one.

    It implements the protocol but answers no case yet: its comments say what to change, and `seglog conform smoke
    --adapter DIRECTORY` whether it works.
    """
    from seglog_conformance.parts import part

    from seglog_format.storage.new_directory import all_or_nothing

    if directory.exists():
        msg = f"{directory} exists"
        raise UsageError(msg)
    with all_or_nothing(directory) as staging, write_errors("copying"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(part("templates") / language, staging, ignore=ignored, dirs_exist_ok=True)
    names = ", ".join(sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()))
    diagnose(f"wrote {names}")
    diagnose(f"next: enter your library in {directory / 'adapter.toml'}, and call it where the comments say")
    diagnose(f"then: seglog conform smoke --adapter {directory}")

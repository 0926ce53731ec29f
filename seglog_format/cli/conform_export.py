"""``seglog conform export``: the cases as one test file for a library's own test runner."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.conform_options import case_options, chosen
from seglog_format.cli.options import PATH, epilog_of
from seglog_format.cli.output import count_text, diagnose
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from seglog_conformance.known import KnownFailures

    from seglog_format.cli.editions import Edition

LANGUAGES: Final = ("c", "go", "java", "js", "python", "rust")


@click.command(epilog=epilog_of("conform export"))
@click.option("--for", "language", type=click.Choice(LANGUAGES), required=True, help="Language of the test file.")
@click.option("--ops", default="decode", show_default=True, metavar="OPS", help="Operations: decode, encode or both.")
@click.option(
    "--edition", "version", default="", help="Edition of the specification; cases of newer rules are left out."
)
@click.option(
    "--known",
    metavar="NAME",
    help="List the known failures of a bundled implementation, or those of a file NAME.toml, as `run` writes it.",
)
@case_options
@click.option(
    "-o", "--output", type=PATH, default=Path(), help="The file, or the directory for it; by default the current one."
)
def export(language: str, ops: str, version: str, known: str | None, output: Path, **options: Any) -> None:  # noqa: ANN401 - click's values
    """Write one test file for the test runner of a library's own language.

    It holds all MUST cases of the operations, with bytes, expected answer, reason and rules, and needs neither Python
    nor seglog to run. Connect your library between the marks `[seglog] yours`. When the command writes the file again,
    it keeps what is between the marks, and with --known it renews the list of known failures. A file has at most 2 MB.
    The command prints how many cases it left out, and why.
    """
    from seglog_conformance.language_files import LANGUAGES as LOOKS
    from seglog_conformance.language_files import LanguageFileError, language_file

    from seglog_format.cli.editions import rules_of
    from seglog_format.storage.new_directory import write_report

    wanted = _operations(ops)
    cases, _ = chosen(options["patterns"], options["families"], options["case_paths"], with_scale=True)
    rules = set(rules_of(edition := _edition(version)))
    ruled = [case for case in cases if rules.issuperset(case.requirements)]
    path = output / LOOKS[language].file if output.is_dir() else output
    before = _text_of(path) if path.exists() else None
    try:
        made = language_file(language, ruled, wanted, edition=edition.name, known=_known(known), before=before)
    except LanguageFileError as error:
        msg = f"{path}: {error}"
        raise UsageError(msg) from error
    write_report(path, made.text)
    diagnose(
        f"wrote {count_text(made.count, 'case')} to {path}"
        + (f", and kept its {' and '.join(made.kept)}" if made.kept else "")
    )
    asked = [case for case in cases if case.op in wanted and case.level == "must"]
    younger = sum(not rules.issuperset(case.requirements) for case in asked)
    if younger:
        diagnose(f"left out {count_text(younger, 'case')}: their rules are newer than edition {edition.name}")
    for reason, count in made.left_out.items():
        diagnose(f"left out {count_text(count, 'case')}: {reason}")
    if before is None:
        diagnose("next: connect your library between the marks [seglog] yours, and run the file")


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: {error}"
        raise UsageError(msg) from error


def _operations(text: str) -> list[str]:
    """Return the operations in a list with commas."""
    from seglog_conformance.case_text import OPS

    wanted = [name for name in text.split(",") if name]
    for name in wanted or [""]:
        if name not in OPS:
            msg = f"no operation {name!r} for a test file: there are {' and '.join(OPS)}; the others need an adapter"
            raise UsageError(msg)
    return wanted


def _edition(version: str) -> Edition:
    from seglog_format.cli.editions import editions

    for edition in editions():
        if version in {edition.version, str(edition.number)}:
            return edition
    if version:
        known = ", ".join(f"{edition.number} ({edition.version})" for edition in editions())
        msg = f"no edition {version!r}: there are {known}"
        raise UsageError(msg)
    return editions()[-1]


def _known(name: str | None) -> KnownFailures | None:
    from seglog_conformance.known import KNOWN, read_known

    if name is None:
        return None
    path = Path(name)
    if path.suffix == ".toml":
        stem, _, version = path.stem.partition("@")
        directory = path.parent
    else:
        stem, _, version = name.partition("@")
        directory = KNOWN
    if not (directory / f"{stem}.toml").is_file() and not (directory / f"{stem}@{version}.toml").is_file():
        msg = f"no list of known failures {directory / stem}.toml"
        raise UsageError(msg)
    return read_known(stem, version, directory)

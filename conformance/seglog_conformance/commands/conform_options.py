"""Options that ``seglog conform`` commands share, and the commands that test beyond fixed cases, or export them."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import FINDINGS
from seglog_format.cli.options import PATH, epilog_of
from seglog_format.cli.output import count_text, diagnose, printable, progress, write_json, write_lines, write_text
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.crash.run import Failure, Options, Result
    from seglog_conformance.judging import Examiner
    from seglog_conformance.known import KnownFailures
    from seglog_conformance.registry import Adapter, Builder, Listed
    from seglog_conformance.search import Found
    from seglog_format.cli.explain import Edition


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


# -- ``seglog conform generate``, ``differential`` and ``cross``: tests beyond fixed cases -----------------------------


def search_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how much to generate."""
    options = (
        click.option(
            "--examples", type=click.IntRange(min=1), default=200, show_default=True, help="Examples in each round."
        ),
        click.option("--seed", type=int, default=0, show_default=True, help="Seed of the first round."),
        click.option(
            "--most", type=click.IntRange(min=1), default=5, show_default=True, help="Findings after which to stop."
        ),
        click.option("--mutate", is_flag=True, help="Change the bytes: a field, a byte of the records, the end."),
        click.option("-o", "--output", type=PATH, help="Write the findings to this file, as cases."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command(epilog=epilog_of("conform generate"))
@testee_options
@search_options
def generate(**options: Any) -> int:  # noqa: ANN401 - click's values
    """Generate partitions, ask testees about them, and shrink each input with a wrong answer to the smallest one.

    Partitions have every magic, and indexes as brokers of different versions write them. The operations are decode,
    encode, index, lookup, read and recover, as far as a testee supports them. With --mutate, the bytes of logs are
    changed in named ways before they are decoded. Each kind of finding is reported once. The exit status is 1 when
    there are findings.
    """
    from seglog_conformance.generated import asked_of_log, logs
    from seglog_conformance.partitions import asked_of_partition, partitions
    from seglog_conformance.search import Search, wrong_verdict

    found = []
    with _examiners(options) as examiners:
        for examiner in examiners:
            search = Search(
                wrong_verdict(examiner.examine),
                logs(is_mutated=True) if options["mutate"] else partitions(),
                asked_of_log if options["mutate"] else asked_of_partition,
                examples=options["examples"],
                seed=options["seed"],
                most=options["most"],
                name=examiner.testee.name,
            )
            new = search.run()
            write_text(f"{examiner.testee.name}: {search.tried} cases, {len(new)} findings")
            found += _print_found(new)
    return _write_found(found, options["output"])


@click.command(epilog=epilog_of("conform differential"))
@testee_options
@case_options
@search_options
@click.option("--generated", is_flag=True, help="Generate cases instead of asking those of the suite.")
def differential(**options: Any) -> int:  # noqa: ANN401 - click's values
    """Send the same bytes to several testees and report the groups that disagree, without any expected answer.

    The comparison covers what all of them return: records with offset, timestamp, key and value, and headers as far as
    possible. Testees that lack what a case needs are left out of it. The exit status is 1 when some disagree.
    """
    from seglog_conformance.differential import Panel, disagreements
    from seglog_conformance.generated import asked_of_log, logs
    from seglog_conformance.search import Search

    with _examiners(options) as examiners:
        if len(examiners) < 2:  # noqa: PLR2004 - it takes two to disagree
            msg = "a comparison needs at least two testees"
            raise UsageError(msg)
        panel = Panel(examiners)
        if options["generated"] or options["mutate"]:
            search = Search(
                panel.wrong(),
                logs(is_mutated=options["mutate"]),
                asked_of_log,
                examples=options["examples"],
                seed=options["seed"],
                most=options["most"],
                name="differential",
            )
            return _write_found(_print_found(search.run()), options["output"])
        cases, _ = chosen(options["patterns"], options["families"], options["case_paths"])
        found = disagreements(panel, cases)
    for case, difference, details in found:
        write_text(printable(f"{case.id}: {difference}"))
        for detail in details:
            write_text(printable(f"      {detail}"))
    write_text(f"{len(cases)} cases, {len(found)} disagreements")
    return FINDINGS if found else 0


@click.command(epilog=epilog_of("conform cross"))
@testee_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def cross(*, as_json: bool, **options: Any) -> int:  # noqa: ANN401 - click's values
    """Let each testee that encodes write the batches of the suite, and each that decodes read them.

    A row is a producer, a column a consumer. Each cell counts the logs that the consumer reads correctly, of those that
    the producer wrote and the consumer supports. The exit status is 1 when a log is read wrongly.
    """
    from seglog_conformance.cases import load_cases
    from seglog_conformance.cross import cross as pairs_of
    from seglog_conformance.report_table import console, cross_lines, cross_table

    with _examiners(options) as examiners:
        pairs = list(pairs_of(examiners, load_cases()))
    if as_json:
        for pair in pairs:
            counts = {str(verdict): count for verdict, count in pair.counts.items()}
            names = {"producer": pair.producer, "consumer": pair.consumer}
            write_json({"type": "pair", **names, "verdicts": counts, "failures": [one.case for one in pair.failures]})
    else:
        console(len({pair.consumer for pair in pairs})).print(cross_table(pairs))
        write_lines(map(printable, cross_lines(pairs)))
    return FINDINGS if any(pair.failures for pair in pairs) else 0


@contextmanager
def _examiners(options: dict[str, Any]) -> Iterator[list[Examiner]]:
    """Start the selected testees; those that do not start are named and left out."""
    from seglog_conformance.judging import Examiner
    from seglog_conformance.registry import AdapterError
    from seglog_conformance.testee import StartError

    builder = builder_of(options)
    with ExitStack() as stack:
        examiners = []
        for listed in wanted(options["testees"], options["directories"], options["version"]):
            try:
                testee = builder.testee(listed)
                extra = listed.adapter.extra_memory if listed.adapter else 0
                examiner = Examiner(testee, extra_growth=extra)
                stack.callback(examiner.close)
                examiner.start()
            except (AdapterError, StartError) as error:
                diagnose(f"{listed.label}: {error}")
                continue
            examiners.append(examiner)
        yield examiners


def _print_found(found: list[Found]) -> list[Found]:
    for one in found:
        write_text(printable(f"  {one.reported} ({one.kind}): {one.case.id}, {one.case.input_size} bytes"))
        for detail in one.detail[:3]:
            write_text(printable(f"      {detail}"))
        if "data" in one.case.stored_request:
            write_text(f"      {one.case.stored_request['data']}")
    return found


def _write_found(found: list[Found], output: Path | None) -> int:
    from seglog_conformance.generated import case_file
    from seglog_format.storage.new_directory import write_report

    if output is not None:
        write_report(output, case_file([one.case for one in found]))
    return FINDINGS if found else 0


# -- ``seglog conform crash``: does a log survive a power cut? ---------------------------------------------------------


STATES: Final = 1000
BROKER_STATES: Final = 20


@click.command(epilog=epilog_of("conform crash"))
@testee_options
@click.option(
    "--broker", metavar="VERSION", help="Start a whole stock broker of Kafka instead, by a checkout of seglog."
)
@click.option(
    "--profile",
    type=click.Choice(["posix", "xfs", "ext4-ordered"]),
    default="posix",
    show_default=True,
    help="What the file system promises.",
)
@click.option(
    "--piece",
    type=click.Choice(["512", "4096"]),
    default="4096",
    show_default=True,
    help="Bytes that a disk writes as a whole.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the first history.")
@click.option(
    "--states",
    type=click.IntRange(min=1),
    show_default=f"{STATES}, of a broker {BROKER_STATES}",
    help="States to judge, about.",
)
@click.option("-o", "--output", type=PATH, help="Write a directory for each failure that is shown into this one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def crash(**options: Any) -> int:  # noqa: ANN401 - click's values
    """Judge whether a log survives a power cut.

    The implementation works on a recording file system, unchanged and in a process of its own. It is then started on
    the states of the disk that a power cut may leave at any moment, and on each has to keep what it acknowledged as
    flushed, and to deliver nothing else. What it also does when only its process ends is no failure, but is said. Each
    kind of failure is shrunk to the operations that have to be lost. The exit status is 1 when there is either.

    A broker lives three lives with two log directories, and is then started on states that differ in kind, about two
    a minute. What it did stays where adapters are built: with the same seed, a run continues there.

    This needs Linux with /dev/fuse, the package fuse3, and pip install 'seglog-format[crash]'; a broker needs Java 17,
    Maven and a checkout of seglog-format.
    """
    from seglog_conformance.crash.recording import RecordingError
    from seglog_conformance.crash.run import Options, write_failure
    from seglog_conformance.crash.workload import WorkloadError
    from seglog_conformance.testee import StartError

    states = options["states"] or (BROKER_STATES if options["broker"] else STATES)
    how = Options(profile=options["profile"], piece=int(options["piece"]), states=states)
    try:
        with progress("Judging", states) as advance:
            examine = _examined_broker if options["broker"] else _examined_adapter
            name, result = examine(options, how, advance)
    except (RecordingError, StartError, WorkloadError) as error:
        raise UsageError(str(error)) from error
    for number, failure in enumerate(result.failures, 1):
        if options["output"] is not None:
            write_failure(failure, options["output"] / f"{number}-{failure.kind.replace(' ', '-')}")
    if options["as_json"]:
        failures = [_line(failure) for failure in result.failures]
        write_json({"counts": dict(result.counts), "failures": failures, "withoutLoss": result.usual})
    else:
        for failure in result.failures:
            write_text(_text(failure))
        counts = result.counts
        for kind, text in result.usual.items():
            write_text(printable(f"without any loss: {kind}: {text}"))
        if result.usual:
            write_text(f"wrong without any loss: {counts['controls with complaints']} of {counts['cuts']} moments")
        write_text(
            f"{name}: {counts['states']} states of {counts['histories']} histories under {how.profile}, "
            f"{counts['failures']} failures of {len(result.failures)} kinds"
        )
    return FINDINGS if result.failures or result.usual else 0


def _examined_adapter(options: dict[str, Any], how: Options, advance: Callable[[int], None]) -> tuple[str, Result]:
    from seglog_conformance.crash.run import process_of, run

    wanted = one_wanted(options, "power cuts are judged for")
    make = partial(process_of, wanted, builder_of(options))
    return wanted.name, run(make, options["seed"], how, states=how.states, on_states=advance)


def _examined_broker(options: dict[str, Any], how: Options, advance: Callable[[int], None]) -> tuple[str, Result]:
    if options["testees"] or options["directories"]:
        msg = "--broker takes no --testee and no --adapter"
        raise UsageError(msg)
    try:
        from proofs.crash_brokers import broker_result
    except ModuleNotFoundError as error:
        msg = (
            f"--broker needs a checkout of seglog-format, installed by `pip install -e '.[dev]'`: no {error.name} here"
        )
        raise UsageError(msg) from error
    name, directory = f"Kafka {options['broker']}", builder_of(options).builds / "brokers"
    return name, broker_result(options["broker"], options["seed"], how, directory, advance)


def _line(failure: Failure) -> dict[str, object]:
    names = ("seed", "profile", "kind", "text", "cut", "lost", "early")
    return {name: getattr(failure, name) for name in names}


def _text(failure: Failure) -> str:
    changes = [*(f"lost: {text}" for text in failure.lost), *(f"there early: {text}" for text in failure.early)]
    head = f"{failure.kind}: {failure.text} (history {failure.seed}, after {failure.cut} operations, {failure.profile})"
    return "\n  ".join(map(printable, [head, *changes]))


# -- ``seglog conform export``: the cases as one test file for a library's own test runner -----------------------------


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
    "-o",
    "--output",
    type=PATH,
    default=Path(),
    help="The directory for the file, or a file name with an ending; by default the current directory.",
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
    from seglog_format.cli.explain import rules_of
    from seglog_format.storage.new_directory import write_report

    wanted = _operations(ops)
    cases, _ = chosen(options["patterns"], options["families"], options["case_paths"], with_scale=True)
    rules = set(rules_of(edition := _edition(version)))
    ruled = [case for case in cases if rules.issuperset(case.requirements)]
    path = output if output.suffix and not output.is_dir() else output / LOOKS[language].file
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
    from seglog_format.cli.explain import editions

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

"""``seglog conform crash``: does a log survive a power cut?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from seglog_format.cli.conform_options import builder_of, one_wanted, testee_options
from seglog_format.cli.exit_status import FINDINGS
from seglog_format.cli.options import PATH, epilog_of
from seglog_format.cli.output import printable, write_json, write_text
from seglog_format.cli.progress import progress
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from seglog_conformance.crash.run import Failure


@click.command(epilog=epilog_of("conform crash"))
@testee_options
@click.option(
    "--profile",
    type=click.Choice(["posix", "ext4-ordered"]),
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
@click.option("--states", type=click.IntRange(min=1), default=1000, show_default=True, help="States to judge, about.")
@click.option("-o", "--output", type=PATH, help="Write a directory for each kind of failure into this one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def crash(**options: Any) -> int:  # noqa: ANN401 - click's values
    """Judge whether a log survives a power cut.

    The implementation works on a recording file system, unchanged and in a process of its own. It is then started on
    the states of the disk that a power cut may leave at any moment, and on each has to keep what it acknowledged as
    flushed, and to deliver nothing else. What it also does when only its process ends is not counted. Each kind of
    failure is shrunk to the operations that have to be lost. The exit status is 1 when there are failures.

    This needs Linux with /dev/fuse, the package fuse3, and pip install 'seglog-format[crash]'.
    """
    from seglog_conformance.crash.recording import RecordingError
    from seglog_conformance.crash.run import Options, process_of, run, write_failure
    from seglog_conformance.crash.workload import WorkloadError
    from seglog_conformance.testee import StartError

    wanted = one_wanted(options, "power cuts are judged for")
    how = Options(profile=options["profile"], piece=int(options["piece"]), states=options["states"])
    try:
        with progress("Judging", options["states"]) as advance:
            make = partial(process_of, wanted, builder_of(options))
            result = run(make, options["seed"], how, states=options["states"], on_states=advance)
    except (RecordingError, StartError, WorkloadError) as error:
        raise UsageError(str(error)) from error
    for number, failure in enumerate(result.failures, 1):
        if options["output"] is not None:
            write_failure(failure, options["output"] / f"{number}-{failure.kind.replace(' ', '-')}")
    if options["as_json"]:
        write_json({"counts": dict(result.counts), "failures": [_line(failure) for failure in result.failures]})
    else:
        for failure in result.failures:
            write_text(printable(_text(failure)))
        counts = result.counts
        write_text(
            f"{wanted.name}: {counts['states']} states of {counts['histories']} histories under {how.profile}, "
            f"{counts['failures']} failures of {len(result.failures)} kinds"
        )
    return FINDINGS if result.failures else 0


def _line(failure: Failure) -> dict[str, object]:
    names = ("seed", "profile", "kind", "text", "cut", "lost", "early")
    return {name: getattr(failure, name) for name in names}


def _text(failure: Failure) -> str:
    changes = [*(f"lost: {text}" for text in failure.lost), *(f"there early: {text}" for text in failure.early)]
    head = f"{failure.kind}: {failure.text} (history {failure.seed}, after {failure.cut} operations, {failure.profile})"
    return "\n  ".join([head, *changes])

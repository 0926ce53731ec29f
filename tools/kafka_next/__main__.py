"""``python -m tools.kafka_next 4.4.0``: the changes of a release, printed and written to a report."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.toolchains import complaints

from proofs.report_facts import SUITE, run_conditions, write_report
from tools import witnesses
from tools.kafka_next import answers, asked_again, classes, definitions, introspection, jars, required, text
from tools.kafka_next.compare import compared, compared_trees
from tools.message_definitions import RELEASES, order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PROGRAMS: Final = ("java", "javap", "mvn")
RELEASE: Final = re.compile(r"\d+\.\d+\.\d+")
Json = dict[str, Any]


def compare(base: str, release: str, *, with_answers: bool = True, say: Callable[[str], object] = print) -> Json:
    """Return all differences between two releases.

    Args:
        base: the older one.
        release: the newer one.
        with_answers: whether to ask Kafka's classes all cases as well, which takes some minutes.
        say: called with messages about the progress.
    """
    say(f"fetching Kafka {base} and {release}")
    old, new = (jars.fetch(base), base), (jars.fetch(release), release)
    say("comparing definitions of messages")
    (stored, sent), (new_stored, new_sent) = definitions.read(*old), definitions.read(*new)
    say("asking for settings and feature levels")
    (settings, features), (new_settings, new_features) = (
        introspection.read(introspection.ask(*each)) for each in (old, new)
    )
    say("asking the recorded witnesses again")
    facts = asked_again.ask_again(base, release, witnesses.read().facts)
    say("comparing classes")
    report = {
        "base": base,
        "release": release,
        "stored": compared_trees(stored, new_stored),
        "sent": compared_trees(sent, new_sent),
        "features": compared(features, new_features),
        "settings": compared_trees(settings, new_settings),
        "facts": facts,
        "classes": classes.compare_classes(old, new),
        "answers": {},
    }
    if with_answers:
        say("asking Kafka's classes all cases")
        report["answers"] = answers.compare_answers(base, release)
    return report


def base_of(release: str, known: Sequence[str] = RELEASES) -> str:
    """Return the last known release before another one.

    Raises:
        ValueError: there is none.
    """
    before = [each for each in known if order(each) < order(release)]
    if not before:
        msg = f"no release before {release} is known: name one with --base"
        raise ValueError(msg)
    return max(before, key=order)


def _release(given: str) -> str:
    if not RELEASE.fullmatch(given):
        msg = f"{given!r} is no release such as 4.4.0"
        raise argparse.ArgumentTypeError(msg)
    return given


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what has to change here, and write the report with all differences if it is requested."""
    parser = argparse.ArgumentParser(prog="python -m tools.kafka_next", description=__doc__)
    parser.add_argument("release", type=_release)
    parser.add_argument("--base", type=_release, help="compare with this release; else with the last known one before")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the result there as JSON")
    parser.add_argument("--all", action="store_true", help="print all differences, not only what to change here")
    parser.add_argument("--no-answers", action="store_true", help="do not ask Kafka's classes the conformance cases")
    given = parser.parse_args(arguments)
    if unusable := complaints(PROGRAMS):
        parser.exit(1, f"{parser.prog} needs {'; '.join(unusable)}\n")
    try:
        base = given.base or base_of(given.release)
        report = compare(
            base,
            given.release,
            with_answers=not given.no_answers,
            say=lambda reported: print(reported, file=sys.stderr),
        )
    except (jars.JarsError, ValueError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    if given.all:
        print(f"# What changed in Kafka {given.release} since {base}", "", *text.page(report), sep="\n")
    print(*required.page(report), sep="\n")
    command = f"make kafka-next VERSION={given.release} BASE={base}"
    conditions = run_conditions(command, versions={"kafka": f"{base} and {given.release}"}, measures=SUITE)
    write_report(given.report, conditions, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())

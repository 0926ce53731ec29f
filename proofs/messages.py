"""Decode and encode the records that Kafka's generated classes of every release since 2.8 write to its own topics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from proofs.harness import Outcome
from proofs.stored_messages.content import STYLES
from proofs.stored_messages.reading import differences, fits_another_layout
from proofs.stored_messages.writing import written
from tools.message_definitions import RELEASES, fetch
from tools.message_fixtures import write

if TYPE_CHECKING:
    import argparse

KEPT_STYLE: Final = "mixed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for the written records."""
    parser.add_argument("--releases", nargs="+", default=list(RELEASES), metavar="RELEASE", help="whose classes write")
    parser.add_argument("--rounds", type=int, default=10, help="times that every kind and version is written")
    parser.add_argument("--jars", type=Path, metavar="DIR", help="take the jars from here instead of fetching them")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write a record of each kind here, for the fixtures")


def prove(options: argparse.Namespace) -> Outcome:
    """Decode all records, and encode them again."""
    jars = options.jars or fetch(options.releases)
    records, failures, kept = 0, [], []
    ambiguous: list[str] = []
    kinds: dict[str, int] = {}
    for release in options.releases:
        seeds = range(options.seed, options.seed + options.rounds)
        lines = [line for seed in seeds for line in written(jars, release, seed)]
        for line in lines:
            (ambiguous if fits_another_layout(line) else failures).extend(differences(line))
        records += len(lines)
        kinds[release] = len({(line["kind"], line["version"]) for line in lines})
        if options.keep is not None:
            kept += written(jars, release, options.seed, (KEPT_STYLE,))
    if options.keep is not None:
        write(options.keep, kept)
    facts = {"records": records, "styles": list(STYLES), "kindVersions": kinds, "ambiguous": ambiguous}
    return Outcome(facts, failures, {"kafka": f"{options.releases[0]} to {options.releases[-1]}"})

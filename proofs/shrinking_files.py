"""No command, call, server or Spark task dies of a file that shrinks, grows or vanishes, or delivers wrong records.

Another process cuts files of logs, indexes, snapshots and checkpoints at chosen bytes, puts zeros in place of the rest,
removes them, and restores them. Meanwhile every command that reads runs again and again, every reading call is repeated
in a child process, and clients fetch from a server. A record that is delivered must be the one that was written at its
offset. Any end but a documented exit status, any traceback, and any error that is not the package's is a failure; so
is any error for a partition whose files do not change.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofs.children import watched
from proofs.harness import Outcome
from proofs.shrinking.changing import CALM, CHANGED, changing, make
from proofs.shrinking.clients import served
from proofs.shrinking.commands import COMMANDS, chosen_files, problems_of
from proofs.shrinking.roads import ROADS
from seglog_format import open_partition

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this proof."""
    parser.add_argument("--records", type=int, default=20_000, help="of each partition")
    parser.add_argument("--times", type=int, default=10, help="that each command runs")
    parser.add_argument("--road-seconds", type=float, default=20, help="for which each call is repeated")
    parser.add_argument("--serve-seconds", type=float, default=120, help="for which clients fetch")
    parser.add_argument("--only", help="nothing but the commands and calls with this in their names")


def prove(options: argparse.Namespace) -> Outcome:
    """Read while files change, in every way."""
    with tempfile.TemporaryDirectory(prefix="seglog-shrinking-") as name:
        truth, root = Path(name) / "truth", Path(name) / "logs"
        make(truth, options.records)
        shutil.copytree(truth, root)
        with changing(truth, root, options.seed):
            commands, failures = _commands(truth, root, Path(name), options)
            calls, more = _calls(root, options)
        failures += more
        facts = {"commands": commands, "calls": calls}
        if _is_wanted("serve", options):
            offsets = {each: _offsets(truth / each) for each in (*CHANGED, CALM)}
            facts["serve"], more = served(truth, root, offsets, options.serve_seconds, options.seed)
            failures += more
    return Outcome({**_totals(facts), **facts}, failures)


def _totals(facts: dict[str, Any]) -> dict[str, int]:
    served_counts = facts.get("serve", {}).values()
    return {
        "command_runs": sum(sum(statuses.values()) for statuses in facts["commands"].values()),
        "passes": sum(call["passes"] for call in facts["calls"].values()),
        "records": sum(counts.get("records", 0) for counts in (*facts["calls"].values(), *served_counts)),
    }


def _offsets(path: Path) -> list[int]:
    with open_partition(path) as partition:
        return [record.offset for record in partition.records()]


def _is_wanted(name: str, options: argparse.Namespace) -> bool:
    return options.only is None or options.only in name


def _commands(truth: Path, root: Path, scratch: Path, options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Run every command; count its exit statuses."""
    dice, facts, failures = random.Random(options.seed), {}, list[str]()
    for name in filter(lambda name: _is_wanted(name, options), COMMANDS):
        statuses = Counter[str]()
        for turn in range(options.times):
            out = scratch / f"out-{turn}"
            status, problems = problems_of(name, chosen_files(root, truth, out, dice))
            statuses[f"status {status}"] += 1
            failures += problems
            shutil.rmtree(out, ignore_errors=True)
        facts[name] = dict(statuses)
    return facts, failures


def _calls(root: Path, options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Repeat every reading call in a child."""
    facts, failures = {}, list[str]()
    for name in filter(lambda name: _is_wanted(name, options), ROADS):
        words = [str(root), name, str(options.road_seconds), str(options.seed)]
        ended = watched(["-m", "proofs.shrinking.roads", *words])
        if ended.status:
            failures.append(f"{name}: status {ended.status}: {ended.errors[-1500:]}")
            continue
        facts[name] = json.loads(ended.output)
        failures += [f"{name}: {problem}" for problem in facts[name].pop("wrong")]
    return facts, failures

"""Check what we read, write and recover against Kafka's own code.

This needs Java 17 and Maven; downloads by Maven are kept. Every part repeats with its seed. The report holds the counts
of comparisons, the requirements by which we depart from brokers, and each disagreement.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.toolchains import child_processes, complaints

from proofs.kafka.appends import check_partitions, check_segments
from proofs.kafka.broker import check_broker
from proofs.kafka.compaction import check_compaction
from proofs.kafka.directories import check_fixtures, check_generated, check_large
from proofs.kafka.loads import check_loads
from proofs.kafka.oracle import RELEASES, TIERS, TOOL_CHAIN, Oracle, OracleError
from proofs.kafka.recovery import check_recovery
from proofs.kafka.tier import check_tier
from proofs.report_facts import proof_command, run_conditions, write_report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from proofs.kafka.result import Result

COUNTS: Final = {
    "recovery": 2000,
    "segments": 300,
    "partitions": 300,
    "loads": 200,
    "compaction": 200,
    "fixtures": 1,
    "directories": 200,
    "large": 8,
    "broker": 12,
    "tier": 1000,
}
"""The parts, and how many seeds each takes; the fixtures part uses one of so many fixtures."""


def parts(oracles: dict[str, Oracle], counts: dict[str, int], seed: int) -> dict[str, Callable[[], Result]]:
    """Return the available parts, by name.

    Args:
        oracles: oracles by release.
        counts: number of seeds by part, as in `COUNTS`.
        seed: first seed of each part.
    """
    every = list(oracles.values())
    newest_first = sorted(every, key=lambda oracle: oracle.release, reverse=True)

    def seeds(name: str) -> range:
        return range(seed, seed + counts[name])

    table: dict[str, Callable[[], Result]] = {
        "recovery": partial(check_recovery, every, seeds("recovery")),
        "segments": partial(check_segments, every, seeds("segments")),
        "partitions": partial(check_partitions, every, seeds("partitions")),
        "loads": partial(check_loads, every, seeds("loads")),
        "compaction": partial(check_compaction, newest_first[0], seeds("compaction")),
        "fixtures": partial(check_fixtures, newest_first[0], counts["fixtures"]),
        "directories": partial(check_generated, newest_first, seeds("directories")),
        "large": partial(check_large, newest_first[0], seeds("large")),
        "tier": partial(check_tier, newest_first, seeds("tier")),
    }
    for oracle in every:
        table[f"broker {oracle.version}"] = partial(check_broker, oracle, seeds("broker"))
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts, print the result of each, write the report. The exit status is 1 if Kafka disagrees anywhere."""
    options = _options(arguments)
    if unusable := complaints(TOOL_CHAIN):
        print(f"Kafka needs {'; '.join(unusable)}", file=sys.stderr)
        return 2
    counts = {name: getattr(options, name) for name in COUNTS}
    conditions, results = _conditions(options), dict[str, dict[str, Any]]()
    try:
        with ExitStack() as stack:
            oracles = {release: stack.enter_context(Oracle(release)) for release in options.releases}
            for name, part in parts(oracles, counts, options.seed).items():
                if name.split()[0] in options.parts and counts[name.split()[0]]:
                    results[name] = {"seed": options.seed, "commit": conditions["commit"], **_run(name, part)}
                    _write(results, options, conditions)
    except OracleError as error:
        print(error, file=sys.stderr)
        return 2
    return 1 if any(result["disagreements"] for result in results.values()) else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first one; the others follow")
    parser.add_argument("--parts", nargs="+", choices=[*COUNTS], default=[*COUNTS], help="run only these")
    parser.add_argument("--releases", nargs="+", choices=[*RELEASES], default=[*RELEASES], help="of Kafka")
    parser.add_argument("--report", type=Path, help="write what was found here, as JSON")
    for name, count in COUNTS.items():
        parser.add_argument(f"--{name}", type=int, default=count, metavar="N", help=f"how many; {count} by default")
    return parser.parse_args(arguments)


def _run(name: str, part: Callable[[], Result]) -> dict[str, Any]:
    started = time.monotonic()
    result = part()
    seconds = time.monotonic() - started
    print(f"{name}: {result.checked} compared, {result.failure_count} disagreements, {seconds:.0f} s", flush=True)
    for text in result.failures:
        print(f"  {text}")
    return {**result.as_object(), "seconds": round(seconds)}


def _write(results: dict[str, dict[str, Any]], options: argparse.Namespace, conditions: dict[str, Any]) -> None:
    """Write the results so far; parts of the same commit that this run leaves out stay unchanged in the report."""
    if options.report is None:
        return
    known = json.loads(options.report.read_text(encoding="utf-8"))["parts"] if options.report.exists() else {}
    parts = {name: part for name, part in known.items() if part.get("commit") == conditions["commit"]} | results
    disagreements = sum(result["disagreements"] for result in parts.values())
    write_report(options.report, conditions, {"disagreements": disagreements, "parts": parts})


def _conditions(options: argparse.Namespace) -> dict[str, Any]:
    kafka = [*(RELEASES[release] for release in options.releases), *TIERS.releases.values()]
    command = proof_command("kafka-reads", options)
    return run_conditions(command, seed=options.seed, versions={"kafka": kafka, "java": java_version()})


def java_version() -> str:
    """Return the version of Java, such as ``17.0.15``."""
    command = ["java", "-XshowSettings:properties", "-version"]
    reported = child_processes.run(
        command, directory=child_processes.NOWHERE, capture_output=True, text=True, check=True
    )
    lines = (line.partition("=") for line in reported.stderr.splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == "java.version"), "")


if __name__ == "__main__":
    sys.exit(main())

"""The common parts of all proofs: command line, report, exit status.

A proof is a module of this package with a docstring whose first paragraph describes it, and two functions:
``add_arguments(parser)`` declares its own options with their defaults, which are those of the full run, and
``prove(options)`` runs it. ``MEASURES`` names the directories that its report depends on, if it is not the package. The
programs in `PROGRAMS` bring a command line and a report of their own, and run by the same command.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import time
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from proofs.report_facts import PACKAGE as PACKAGE_MEASURED
from proofs.report_facts import proof_command, run_conditions, write_report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent
NO_PROOFS = frozenset({"__init__", "__main__", "harness"})
PROGRAMS: Final = {
    "bounds": "proofs.fuzz.bounds",
    "conform": "authoring.matrix",
    "fuzz": "proofs.fuzz.fuzz",
    "hostile": "proofs.fuzz.hostile",
    "kafka-reads": "proofs.kafka.kafka_reads",
    "mutants": "proofs.mutants.mutants",
    "spark-kills": "proofs.spark.spark_kills",
    "spark-scale": "proofs.spark.spark_scale",
    "trace-kill": "proofs.mutants.trace_kill",
}
"""Modules with a command line of their own, by the name of the proof, which is that of its report."""
MODULES: Final = {
    "columnar": "proofs.fuzz.columnar_diff",
    "kills": "proofs.power.kill_writer",
    "serve-kills": "proofs.serve.serve_kills",
    "serve-fuzz": "proofs.serve.serve_fuzz",
    "spark-damage": "proofs.spark.spark_damage",
    "spark-equal": "proofs.spark.spark_equal",
    "spark-reference": "proofs.spark.spark_reference",
    "spark-retries": "proofs.spark.spark_retries",
}
"""Other proofs that are not directly in this package, by name."""
MAX_FAILURES = 50
"""So many failures are kept in a report; all of them are counted."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a proof.

    Attributes:
        facts: counts and measurements by name; anything that JSON can hold.
        failures: a line for each failure, with the command or number that repeats it.
        versions: versions of the tested programs, besides Python.
    """

    facts: Mapping[str, Any]
    failures: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


class GrowingFile:
    """A file of JSON lines that a run adds to, and the next one reads, so that it goes on where that one ended."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path

    def lines(self) -> list[Any]:
        """Return what the file has; nothing without a file."""
        return [json.loads(line) for line in self._path.read_text("utf-8").splitlines()] if self._path.exists() else []

    def add(self, line: object) -> None:
        """Add one line."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


class Proof(Protocol):
    """The interface of a proof's module."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the proof's own options."""

    def prove(self, options: argparse.Namespace) -> Outcome:
        """Run the proof."""


def names() -> list[str]:
    """List the proofs, as they are called on the command line."""
    return sorted(
        [*PROGRAMS, *MODULES, *(path.stem.replace("_", "-") for path in PACKAGE.glob("*.py") if _is_proof(path))]
    )


def _is_proof(path: Path) -> bool:
    return path.stem not in NO_PROOFS and "\ndef prove(" in path.read_text(encoding="utf-8")


def description(name: str) -> str:
    """Return the first paragraph of a proof's docstring, without importing the proof."""
    text = _source(_module(name)).read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0].replace("\n", " ")


def _module(name: str) -> str:
    return {**PROGRAMS, **MODULES}.get(name, f"proofs.{name.replace('-', '_')}")


def _source(module: str) -> Path:
    top = ROOT / "conformance" if module.startswith("authoring.") else ROOT
    return top.joinpath(*module.split(".")).with_suffix(".py")


def load(name: str) -> Proof:
    """Import a proof that is no program by its name.

    Raises:
        SystemExit: there is none of that name.
    """
    if name not in names():
        sys.exit(f"no proof is called {name!r}; there are: {', '.join(names())}")
    proof: Any = import_module(_module(name))
    return proof


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one proof.

    Returns:
        0 if nothing failed, else 1; for a program, its exit status.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in {"-h", "--help"}:
        print("usage: python -m proofs NAME [OPTION ...]\n")
        for name in names():
            print(f"  {name:16} {description(name)}")
        return 0
    name, *rest = given
    if name in PROGRAMS:
        sys.argv = [f"python -m proofs {name}", *rest]
        program: Any = import_module(PROGRAMS[name])
        return int(program.main())
    proof = load(name)
    options = _parser(name, proof).parse_args(rest)
    measured = getattr(proof, "MEASURES", PACKAGE_MEASURED)
    conditions = run_conditions(proof_command(name, options), seed=options.seed, measures=measured)
    started = time.perf_counter()
    outcome = proof.prove(options)
    conditions["versions"] |= outcome.versions
    print(write_report(options.report, conditions, _found(outcome, time.perf_counter() - started)), end="")
    return 1 if outcome.failures else 0


def _parser(name: str, proof: Proof) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m proofs {name}",
        description=description(name),
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1, help="of everything that is random")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the report here, as JSON")
    proof.add_arguments(parser)
    return parser


def _found(outcome: Outcome, seconds: float) -> dict[str, Any]:
    return {
        **outcome.facts,
        "failures": len(outcome.failures),
        "failed": list(outcome.failures[:MAX_FAILURES]),
        "seconds": round(seconds, 1),
    }

"""Releases with publicly known defects fail the cases that name the rule, and later releases pass them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_conformance.bugs import read_bugs, report, show
from seglog_conformance.cases import load_cases
from seglog_conformance.registry import Builder, adapters

from proofs.harness import ROOT, Outcome
from proofs.report_facts import SUITE

if TYPE_CHECKING:
    import argparse

MEASURES: Final = SUITE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no options: the directory of the builds is that of the suite."""
    del parser


def prove(options: argparse.Namespace) -> Outcome:
    """Build both releases of each claim, and ask them."""
    del options
    claims = [bug for adapter in adapters() for bug in read_bugs(adapter)]
    shown = show(Builder(ROOT / "build" / "conform"), claims, load_cases())
    wrong = [f"{one.bug.adapter.name}: {one.bug.summary}" for one in shown if not (one.holds or one.is_unavailable)]
    return Outcome(report(shown), wrong)

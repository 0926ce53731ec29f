"""The matrix in a real browser, without a network: cells, filters, and the way to the bytes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from urllib.parse import urlencode

import pytest
from helpers import node_tools
from seglog_conformance.cases import load_cases, selected
from seglog_conformance.direct import DirectTestee
from seglog_conformance.reference import Reference
from seglog_conformance.registry import Builder, Listed
from seglog_conformance.report_html import page
from seglog_conformance.runner import Options, Runner

CASES = selected(load_cases(), ["1", "26", "27"])


class NoChecksums(Reference):
    """The reference, which does not look at checksums."""

    def answer(self, request: dict[str, object]) -> dict[str, object]:
        return super().answer({**request, "options": {"crc": False}})


class Pair(Builder):
    def testee(self, wanted: Listed) -> DirectTestee:
        return DirectTestee(wanted.name, Reference() if wanted.name == "right" else NoChecksums())


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = Options(smoke=False, known=Path("/nowhere"))
    outcomes = Runner(Pair(), CASES, options=options).run([Listed("right"), Listed("wrong")])
    path = tmp_path_factory.mktemp("page") / "matrix.html"
    environment = {"suite": "1", "casesSha256": "0" * 64, "platform": "a test"}
    path.write_text(page(outcomes, CASES, environment), encoding="utf-8")
    return path


def drawn(matrix: Path, **state: object) -> str:
    """Return the document after its script has run."""
    browser = node_tools.browser()
    if browser is None:
        pytest.skip("the page of the matrix needs a Chromium that works")
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom")
    profile = f"--user-data-dir={matrix.parent / 'profile'}"
    command = [
        browser,
        *flags,
        profile,
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"{matrix.as_uri()}#{urlencode(state)}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert 'data-ready="yes"' in done.stdout
    return done.stdout


def cells(document: str) -> list[str]:
    table = document.partition('<table id="matrix">')[2].partition("</table>")[0]
    return re.findall(r'<td class="([^"]*)"><button[^>]*>([^<]*)', table)


def test_the_matrix(matrix: Path) -> None:
    count = {family: sum(case.family == family for case in CASES) for family in (1, 26)}
    found = cells(drawn(matrix))
    assert found[0] == ("good", f"{count[1]}/{count[1]}")
    assert found[2] == ("good", f"{count[26]}/{count[26]}")
    assert found[3][0] == "bad"


def test_filters(matrix: Path) -> None:
    assert len(cells(drawn(matrix, search="crc/ SEG-BAT-003"))) == 2
    only = cells(drawn(matrix, verdict="ACCEPTS-INVALID"))
    assert only
    assert all(name == "bad" for name, _ in only)
    count = sum(case.family == 27 and case.level == "should" for case in CASES)
    assert f"{count}/{count}" in dict(cells(drawn(matrix, level="should")))["good"]


def test_a_cell_leads_to_its_cases_and_a_case_to_the_bytes(matrix: Path) -> None:
    case = next(case for case in CASES if case.family == 26 and case.result == "invalid")
    document = drawn(matrix, testee=1, family=26, case=case.id)
    listed = document.partition('<section id="cases">')[2].partition("</section>")[0]
    shown = document.partition('<section id="case">')[2].partition("</section>")[0]
    assert listed.count('class="case"') == sum(case.family == 26 for case in CASES)
    for words in (case.why, "base_offset", "batch_length", "Expected", "Came back", f"seglog conform repro {case.id}"):
        assert words in shown
    spans = re.findall(r'<div class="hex"[^>]*>(.*?)</div>', shown, re.DOTALL)[0]
    assert bytes.fromhex(re.sub(r"<[^>]*>", "", spans)) == bytes.fromhex(case.request["data"])

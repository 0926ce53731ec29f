"""The built site: no link leads nowhere, each rule is two clicks from its proof, and a browser has no complaint."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest
from helpers import node_tools
from helpers.node_support import need_browser, serving
from helpers.support import REPOSITORY

from seglog_format.requirements import requirements
from tools.docs import source_pages

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = REPOSITORY / "tests" / "node" / "site.cjs"
SECTION = re.compile(r"^### (SEG-[A-Z]{3}-\d{3}) .*?\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
ALONE = {"404.html"}
"""Pages that no other leads to."""


class PageParser(HTMLParser):
    """Anchors and links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := given.get(name))}
        self.links += [value for name in ("href", "src") if (value := given.get(name))]
        assert tag != "script" or not (given.get("src") or "").startswith("http")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("material") is None:
        pytest.skip("building the site needs the packages of the extra `docs`")
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(target)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, PageParser]:
    found = {}
    for path in sorted(site.rglob("*.html")):
        found[path] = PageParser()
        found[path].feed(path.read_text(encoding="utf-8"))
    return found


def target_of(page: Path, link: str, site: Path) -> Path | None:
    """The file that a link leads to; None for another site."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    if not parts.path:
        return page
    start = site if parts.path.startswith("/") else page.parent
    found = (start / unquote(parts.path).lstrip("/")).resolve()
    return found / "index.html" if found.is_dir() else found


def test_no_link_leads_nowhere_and_no_page_is_alone(site: Path, pages: dict[Path, PageParser]) -> None:
    broken: dict[str, list[str]] = defaultdict(list)
    reached = set()
    for page, parsed in pages.items():
        for link in parsed.links:
            target = target_of(page, link, site)
            if target is None:
                continue
            anchor = unquote(urlsplit(link).fragment)
            missing = anchor and target in pages and anchor not in pages[target].anchors
            if missing or not target.is_file():
                broken[str(page.relative_to(site))].append(link)
            if target != page:
                reached.add(target)
    assert broken == {}
    assert {str(page.relative_to(site)) for page in pages.keys() - reached} == ALONE


def test_every_rule_is_two_clicks_from_code_tests_and_fixtures(site: Path, pages: dict[Path, PageParser]) -> None:
    table = site / "reference" / "requirements" / "index.html"
    for rule in requirements().values():
        anchor = rule.id.lower()
        chapter = site / "spec" / rule.chapter / "index.html"
        for page, other in ((chapter, table), (table, chapter)):
            assert anchor in pages[page].anchors
            links = [link for link in pages[page].links if link.endswith(f"#{anchor}")]
            assert any(target_of(page, link, site) == other for link in links), rule.id


def test_each_place_and_fixture_that_the_table_names_is_shown(site: Path, pages: dict[Path, PageParser]) -> None:
    table = site / "reference" / "requirements" / "index.html"
    text = (REPOSITORY / "docs" / source_pages.TABLE).read_text(encoding="utf-8")
    shown = [link for link in pages[table].links if link.startswith("../../source/")]
    named = source_pages.PLACE.findall(text), source_pages.FIXTURE.findall(text)
    assert len(shown) == len(named[0]) + len(named[1])
    assert sum("#" in link for link in shown) > len(named[1]) + len(named[0]) // 2


def test_every_rule_tells_what_holds_it() -> None:
    text = (REPOSITORY / "docs" / "reference" / "requirements.md").read_text(encoding="utf-8")
    told = {
        match[1]: set(re.findall(r"^- ([A-Z][a-z ]+):", match[2], re.MULTILINE)) for match in SECTION.finditer(text)
    }
    for rule in requirements().values():
        wanted = {"auto": {"Code", "Tests"}, "behaviour": {"Faults", "Tests"}}.get(rule.check, set())
        assert wanted <= told[rule.id], rule.id
    assert told["SEG-IDX-004"] >= {"Fields", "Code", "Tests", "Fixtures", "Broken in", "Kept by"}


def test_search_navigation_colours_and_widths(site: Path) -> None:
    browser = need_browser("the test of the site")
    with serving(site) as origin:
        seen = json.loads(node_tools.node(SCRIPT, browser, origin, seconds=240))
    assert (seen["errors"], seen["elsewhere"]) == ([], [])
    assert "/spec/50-producer-snapshot/" in seen["found"]
    assert seen["navigated"].startswith("Offset index")
    assert seen["requirement"] == "#seg-idx-004"
    assert seen["explorer"] == "/explorer/"
    assert seen["schemes"] == ["default", "slate"]
    assert seen["backgroundChanges"]
    assert seen["narrow"][0] <= seen["narrow"][1]
    assert seen["drawer"]
    assert {place: found for place, found in seen["axe"].items() if found} == {}

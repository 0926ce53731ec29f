"""The built site: no link leads nowhere, each rule is two clicks from its proof, and a browser has no complaint."""

from __future__ import annotations

import colorsys
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import pytest
from helpers import node_tools
from helpers.node_support import need_browser, serving
from helpers.support import REPOSITORY

from seglog_format.cli.explain import editions, rules_of, trace_of
from seglog_format.cli.structures import structures
from seglog_format.field_names import kafka_name
from seglog_format.requirements import requirements
from tools.docs import permalinks, site_home, site_search, source_pages, whole_page

pytestmark = pytest.mark.xdist_group("site")
"""The site is built once."""
SCRIPT = REPOSITORY / "tests" / "node" / "site.cjs"
ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
HREF = re.compile(r'href="([^"]+)"')
LABELS = {
    "fields": "Fields",
    "code": "Code",
    "tests": "Tests",
    "faults": "Faults",
    "fixtures": "Fixtures",
    "damaged": "Broken in",
}
FAMILIES = {name for _, name in source_pages.families()}
REQUIREMENT = re.compile(r"^## (SEG-[A-Z]{3}-\d{3}) .*?\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
NODE = shutil.which("node")
SEARCH = REPOSITORY / "tests" / "node" / "search.cjs"
FIRST = {
    "spec/40-offset-index": ["SEG-IDX-008", "offset index"],
    "spec/71-flush-and-recovery": ["SEG-RCV-003", "flush"],
    "spec/30-record-batch": ["SEG-BAT-003", "record batch"],
    "spec/47-tier-layouts": ["SEG-TIR-004"],
    "specification/glossary": [
        "LSO",
        "last stable offset",
        "HW",
        "high watermark",
        "LEO",
        "log end offset",
        "ISR",
        "tombstone",
        "log start offset",
        "low watermark",
        "commit marker",
        "delete horizon",
        "dirty offset",
        "magic byte",
    ],
    "reference/command-line": ["recover", "salvage", "exit status", "verify"],
    "spec/41-time-index": ["time index"],
    "spec/50-producer-snapshot": ["producer snapshot"],
    "spec/32-control-records": ["control records"],
    "reference/message-set": ["message set"],
    "spec/31-record": ["varint"],
    "spec/51-checkpoints": ["leader epoch checkpoint"],
    "spec/72-retention": ["retention"],
    "spec/73-compaction": ["compaction"],
    "spec/34-compression": ["snappy", "zstd"],
    "spec/46-remote-log-metadata": ["remote log metadata"],
    "spec/60-lookup": ["lookup"],
    "how-to/rescue-records": ["rescue records"],
    "how-to/rebuild-an-index": ["rebuild index"],
    "how-to/compare-two-replicas": ["compare replicas"],
    "how-to/find-why-a-consumer-stops": ["consumer stops", "OffsetOutOfRangeException"],
    "how-to/inspect-a-broken-directory": ["broken directory"],
    "how-to/scan-to-arrow": ["pandas"],
    "how-to/query-with-duckdb-and-polars": ["DuckDB", "Polars"],
    "how-to/query-with-spark": ["PySpark"],
    "how-to/serve-a-cold-directory": ["kcat"],
    "how-to/write-an-adapter": ["adapter"],
    "how-to/install": ["install"],
    "how-to/explore-in-the-browser": ["explorer"],
    "reference/machine-readable": ["Kaitai"],
    "explanation/performance": ["performance"],
    "conformance": ["conformance"],
    "spec/D-errata": ["errata"],
    "conformance/sarama-wire": ["sarama"],
}
"""Pages, and the words for which the search shows each among its first."""
ALWAYS_FIRST = ("SEG-IDX-008", "SEG-RCV-003", "LSO", "HW", "LEO", "ISR", "high watermark", "tombstone")
"""Words whose page comes first; those of the others are among the first three."""
PLACEHOLDER = re.compile(r"(?:git clone|repo:|uses:|pip install) [^\n]*(?:example\.|owner/)")
MAXIMUM_LINKS = 22
"""Links that the column of a page shows at once."""
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
    """Provide the site, built as `make docs` builds it: by CI before the tests, or by itself."""
    if built := os.environ.get("SEGLOG_SITE"):
        return Path(built)
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
    """Return the file that a link leads to; None for another site."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    if not parts.path:
        return page
    start = site if parts.path.startswith("/") else page.parent
    found = (start / unquote(parts.path).lstrip("/")).resolve()
    return found / "index.html" if found.is_dir() else found


def chapter_link(identifier: str, site: Path) -> tuple[Path | None, str]:
    """Page and anchor of a rule."""
    return site / "spec" / requirements()[identifier].chapter / "index.html", identifier.lower()


def links_of(page: Path, text: str, site: Path) -> set[tuple[Path | None, str]]:
    """Page and anchor of each link in a part of a page."""
    return {(target_of(page, link, site), urlsplit(link).fragment) for link in HREF.findall(text)}


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
    table = site / "reference" / "requirements"
    for rule in requirements().values():
        anchor, list_page = rule.id.lower(), table / rule.chapter / "index.html"
        chapter = site / "spec" / rule.chapter / "index.html"
        for page, other in ((chapter, list_page), (list_page, chapter), (table / "index.html", list_page)):
            assert anchor in pages[page].anchors
            links = [link for link in pages[page].links if link.endswith(f"#{anchor}")]
            assert any(target_of(page, link, site) == other for link in links), rule.id


def test_every_field_is_one_click_from_each_rule_that_it_names(site: Path, pages: dict[Path, PageParser]) -> None:
    read = [page for page in pages if page.parent.parent == site / "reference"]
    rows = [(page, row) for page in read for row in ROW.findall(page.read_text(encoding="utf-8"))]
    for structure in structures():
        for field in structure.fields:
            wanted = {chapter_link(identifier, site) for identifier in field.requirements}
            cell = f"<code>{kafka_name(field.name)}</code>"
            found = [links_of(page, row, site) for page, row in rows if cell in row]
            assert any(wanted <= links for links in found), (structure.name, field.name)


def test_the_explorer_links_to_anchors_that_are_there(site: Path, pages: dict[Path, PageParser]) -> None:
    script = (site / "explorer" / "tables.js").read_text(encoding="utf-8")
    rules = re.findall(
        r'^  "(SEG-[A-Z]{3}-[0-9]{3})": [{]"level": "[A-Z]+", "chapter": "([^"]+)"', script, re.MULTILINE
    )
    assert len(rules) > 50
    for identifier, chapter in rules:
        assert identifier.lower() in pages[site / "spec" / chapter / "index.html"].anchors


def test_the_table_has_all_that_the_trace_has() -> None:
    shown = {match[1]: match[2] for text in source_pages.tables().values() for match in REQUIREMENT.finditer(text)}
    for rule in requirements():
        trace = trace_of(rule)
        assert all(f"`{case}`" in shown[rule] for case in trace["cases"]), rule
        for key, label in LABELS.items():
            assert (f"- {label}: `" in shown[rule]) == bool(trace[key]), (rule, label)


def test_each_place_fixture_and_case_that_the_table_names_is_shown(site: Path, pages: dict[Path, PageParser]) -> None:
    tables, text = site / "reference" / "requirements", "".join(source_pages.tables().values())
    links = [link for page in tables.glob("*/index.html") for link in pages[page].links]
    shown = [link for link in links if link.startswith("../../../source/")]
    sources, fixtures = source_pages.SOURCE.findall(text), source_pages.FIXTURE.findall(text)
    cases = [case for case in source_pages.CASE.findall(text) if case[0] in FAMILIES]
    assert len(shown) == len(sources) + len(fixtures) + len(cases)
    assert sum("#" in link for link in shown) > len(fixtures) + len(cases) + len(sources) // 2


def test_every_rule_tells_what_holds_it() -> None:
    reported = {
        match[1]: set(re.findall(r"^- ([A-Z][a-z ]+):", match[2], re.MULTILINE))
        for text in source_pages.tables().values()
        for match in REQUIREMENT.finditer(text)
    }
    for rule in requirements().values():
        wanted = {"auto": {"Code", "Tests"}, "behaviour": {"Faults", "Tests"}}.get(rule.check, set())
        assert wanted <= reported[rule.id], rule.id
    assert reported["SEG-IDX-004"] >= {"Fields", "Code", "Tests", "Fixtures", "Broken in", "Kept by"}


def test_permanent_links_lead_to_every_rule_of_every_edition(site: Path, pages: dict[Path, PageParser]) -> None:
    published = {identifier for edition in editions() for identifier in rules_of(edition)}
    numbered = permalinks.numbered().keys()
    assert {"DEP-01", "DEP-13", "F-DIS-01", "ERR-001"} <= numbered
    for name in published | numbered:
        page = site / "r" / name / "index.html"
        text = page.read_text(encoding="utf-8")
        (link,) = pages[page].links[1:]
        assert f'content="0; url={link}"' in text
        target = target_of(page, link, site)
        assert target is not None
        assert unquote(urlsplit(link).fragment) in pages[target].anchors
        if name in published:
            assert (target, urlsplit(link).fragment) == chapter_link(name, site)


def test_a_rule_that_is_gone_keeps_its_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permalinks, "withdrawn", lambda: {"SEG-XXX-009": "Old & gone."})
    page = dict(permalinks.made_pages())["r/SEG-XXX-009/index.html"]
    assert "Old &amp; gone." in page
    assert 'content="20; url=../../spec/../specification/changes/"' in page


def test_the_whole_specification_is_on_one_page(site: Path, pages: dict[Path, PageParser]) -> None:
    page = site / "spec" / "whole" / "index.html"
    assert {rule.lower() for rule in requirements()} <= pages[page].anchors
    assert set(whole_page.parts()) <= pages[page].anchors
    text = page.read_text(encoding="utf-8")
    body = text[text.index("<article") : text.index("</article>")]
    anchors = re.findall(r' id="([^"]+)"', body)
    assert len(anchors) == len(set(anchors))
    leaving = {link for link in HREF.findall(body) if not link.startswith("#")}
    assert not {link for link in leaving if "/spec/" in link or re.match(r"\.\./[0-9A-Z]", link)}
    chapter = (REPOSITORY / "spec" / "40-offset-index.md").read_text(encoding="utf-8")
    for heading in re.findall(r"^#+ (.+)$", chapter, re.MULTILINE):
        assert heading.replace("`", "") in re.sub("<[^>]+>", "", body), heading


def test_search_navigation_colours_and_widths(site: Path) -> None:
    browser = need_browser("the test of the site")
    with serving(site) as origin:
        seen = json.loads(node_tools.node(SCRIPT, browser, origin, seconds=540))
    assert (seen["errors"], seen["elsewhere"]) == ([], [])
    assert "/spec/50-producer-snapshot/" in seen["found"]
    assert seen["navigated"].startswith("Offset index")
    assert seen["requirement"] == "#seg-idx-004"
    assert seen["explorer"] == "/explorer/"
    assert seen["schemes"] == ["default", "slate"]
    assert seen["backgroundChanges"]
    assert seen["narrow"][0] <= seen["narrow"][1]
    assert seen["drawer"]
    assert {page: count for page, count in seen["links"].items() if count > MAXIMUM_LINKS} == {}
    assert {address: found for address, found in seen["axe"].items() if found} == {}


RULE = re.compile(r"([^{};]*)\{([^{}]*)\}")
VARIABLE = re.compile(r"(--md-[\w-]+): ?([^;}]+)")
HSLA = re.compile(r"hsla\(([\d.]+)deg, ?([\d.]+)%, ?([\d.]+)%, ?([\d.]+)\)")


def colour(text: str, variables: dict[str, str], under: tuple[float, ...] = ()) -> tuple[float, ...]:
    """Return red, green and blue of a colour from 0 to 1, laid over another one."""
    while "var(" in text:
        text = re.sub(r"var\((--[\w-]+)\)", lambda match: variables[match[1]], text)
    if found := HSLA.match(text):
        hue, saturation, lightness, alpha = map(float, found.groups())
        rgb = colorsys.hls_to_rgb(hue / 360, lightness / 100, saturation / 100)
    else:
        digits = text[1:] if len(text) > 4 else "".join(2 * digit for digit in text[1:])
        parts = [int(digits[start : start + 2], 16) / 255 for start in range(0, len(digits), 2)]
        rgb, alpha = (parts[0], parts[1], parts[2]), parts[3] if len(parts) > 3 else 1.0
    return tuple(alpha * one + (1 - alpha) * other for one, other in zip(rgb, under or rgb, strict=True))


def luminance(rgb: tuple[float, ...]) -> float:
    red, green, blue = (one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(text: str, background: str, variables: dict[str, str]) -> float:
    """Return the contrast of WCAG: 4.5 is the least for text of usual size."""
    under = colour(background, variables)
    low, high = sorted((luminance(under), luminance(colour(text, variables, under))))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["default", "slate"])
def test_links_and_code_can_be_read_in_both_schemes(scheme: str) -> None:
    material = importlib.util.find_spec("material")
    if material is None or material.origin is None:
        pytest.skip("the colours of the theme come with the packages of the extra `docs`")
    sheets = sorted((Path(material.origin).parent / "templates/assets/stylesheets").glob("*.css"))
    ours = REPOSITORY / "docs" / "assets" / "site.css"
    chosen = re.compile(rf"(:root|\[data-md-color-(scheme={scheme}|primary(=blue-grey)?)\])+")
    text = "".join(sheet.read_text(encoding="utf-8") for sheet in [*sheets, ours]).replace('"', "")
    taken = [
        (selector.count("["), body)  # the more attributes, the stronger
        for selectors, body in RULE.findall(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
        for selector in map(str.strip, selectors.split(","))
        if chosen.fullmatch(selector)
    ]
    variables = {"--md-hue": "225deg"}
    for _, body in sorted(taken, key=lambda rule: rule[0]):
        variables |= dict(VARIABLE.findall(body))
    names = [
        name
        for name in variables
        if re.fullmatch(r"--md-code-hl-\w+-color|--md-typeset-a-color|--md-code-fg-color", name)
    ]
    assert len(names) > 10
    pairs = [(name, under) for name in names for under in ("--md-default-bg-color", "--md-code-bg-color")]
    seen = {pair: contrast(*(variables[name] for name in pair), variables) for pair in pairs}
    assert {pair: round(found, 2) for pair, found in seen.items() if found < 4.5} == {}


@pytest.mark.skipif(NODE is None, reason="the script of the site runs in node")
def test_options_are_found_with_their_dashes() -> None:
    assert NODE is not None
    found = {entry["title"]: entry["text"].split() for entry in site_search.entries()}
    assert {"--not-compacted", "--engine", "--json", "--help"} <= {*found["seglog verify"]}
    assert "--end-after" in found["seglog serve"]
    script = REPOSITORY / "docs" / "assets" / "site.js"
    typed = """
let typed; globalThis.addEventListener = (name, act) => { if (name === "input") typed = act; };
globalThis.document = { querySelectorAll: () => [] };
require(process.argv[1]);
const shown = (value) => { const target = { value, matches: () => true }; typed({ target }); return target.value; };
console.log(JSON.stringify(["--end-after", "seglog --json", "-x", "a--b", "--"].map(shown)));
"""
    done = subprocess.run([NODE, "-e", typed, str(script)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["end-after", "seglog json", "-x", "a--b", "--"]


def test_search_leads_to_the_right_page_first(site: Path) -> None:
    browser = need_browser("the test of the search")
    wanted = {word: f"/{page}/" for page, words in FIRST.items() for word in words}
    with serving(site) as origin:
        seen = json.loads(node_tools.node(SEARCH, browser, origin, text=json.dumps(list(wanted)), seconds=540))
    found = {word: [result[0] for result in results] for word, results in seen["found"].items()}
    assert {word: found[word] for word, page in wanted.items() if page not in found[word]} == {}
    assert {word: found[word][0] for word in ALWAYS_FIRST} == {word: wanted[word] for word in ALWAYS_FIRST}
    assert seen["found"]["SEG-IDX-008"][0][1] == "#seg-idx-008"
    assert seen["found"]["LSO"][0][1] == "#last-stable-offset"
    assert (seen["errors"], seen["elsewhere"]) == ([], [])


def test_a_home_is_shown_once_it_is_set_and_no_page_has_a_placeholder(monkeypatch: pytest.MonkeyPatch) -> None:
    config = SimpleNamespace(copyright="ours", repo_url=None, edit_uri=None, site_url=None)
    site_home.show(config)
    assert vars(config) == {"copyright": "ours", "repo_url": None, "edit_uri": None, "site_url": None}
    home = {"address": "https://a.test/", "repository": "https://b.test/r", "edit": "edit/main/docs/", "feedback": ""}
    monkeypatch.setattr(site_home, "SETTINGS", {**home, "versions": {"0.1": "https://a.test/0.1/"}})
    site_home.show(config)
    assert (config.site_url, config.repo_url, config.edit_uri) == tuple(list(home.values())[:3])
    assert config.copyright == 'ours · <a href="https://a.test/0.1/">0.1</a>'
    texts = [path.read_text(encoding="utf-8") for path in (REPOSITORY / "docs").rglob("*.md")]
    assert not [
        text for text in texts if re.search(r"(?:git clone|repo:|uses:|pip install) [^\n]*(?:example\.|owner/)", text)
    ]

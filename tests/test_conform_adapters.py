"""Adapters as they stand, without building them: that takes toolchains, and a network."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from helpers.walking import each_of

ROOT = Path(__file__).resolve().parent.parent
SHARED_GO = ROOT / "conformance" / "adapters" / "_shared" / "go"
ROOTS = (ROOT / "conformance" / "adapters", ROOT / "tests" / "serve_clients")
SOURCES = {".go", ".java", ".mjs", ".py", ".rs"}
SINGLE = re.compile(r"^(?:func|type|var|const)\s+(\w+)", re.MULTILINE)
GROUP = re.compile(r"^(?:type|var|const) \(\n(.*?)^\)", re.MULTILINE | re.DOTALL)
ERRORS = re.compile(r"""(?:"errors"|\berrors): *(?:\[|\w)""")
"""The feature of a greeting that lists the types of a library's own errors."""
GROUPED = re.compile(r"^\t(\w+)", re.MULTILINE)


def copies_shared_go(directory: Path) -> bool:
    """Tell whether a build puts the shared files and the adapter's own into one package."""
    build = tomllib.loads((directory / "adapter.toml").read_text(encoding="utf-8")).get("build", [])
    return any("_shared/go" in word for command in build for word in command)


def declared(directory: Path) -> Counter[str]:
    """Return how often each name is declared at the top of the Go files of a directory."""
    names: Counter[str] = Counter()
    for path in directory.glob("*.go"):
        text = path.read_text(encoding="utf-8")
        names.update(SINGLE.findall(text))
        names.update(name for group in GROUP.findall(text) for name in GROUPED.findall(group))
    return names


ADAPTERS = [path.parent for root in ROOTS for path in sorted(root.glob("*/adapter.toml"))]
IN_GO = [path for path in ADAPTERS if copies_shared_go(path)]


@pytest.mark.parametrize("directory", IN_GO, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_go_adapter_declares_nothing_twice(directory: Path) -> None:
    """Go refuses a name that a package declares twice, and each adapter is one package with what is shared."""
    names = declared(directory) + declared(SHARED_GO)
    assert {"main", "serve"} <= names.keys()
    assert [name for name, count in names.items() if count > 1] == []


def test_there_are_go_adapters() -> None:
    assert len(IN_GO) >= 7


@each_of("directory", [path for path in ADAPTERS if path.parent == ROOTS[0]], ids=lambda path: path.name)
def test_an_adapter_declares_the_errors_of_its_library(directory: Path) -> None:
    """At 0a5c6856 16 did not: a refusal by an index error of a whole client counted as one that it meant."""
    described = (directory / "adapter.toml").read_text(encoding="utf-8")
    program = re.search(r"\{adapter\}/\.\./([\w-]+)/adapter\.py", described)
    home = ROOTS[0] / program[1] if program else directory
    texts = [path.read_text(encoding="utf-8") for path in home.rglob("*") if path.suffix in SOURCES]
    if any("consumerFeatures" in text for text in texts):
        texts.append((SHARED_GO / "consuming.go").read_text(encoding="utf-8"))
    assert any(ERRORS.search(text) for text in texts)

"""Causes in the source of libraries: each library has those of its three worst groups, and each is about a group."""

from __future__ import annotations

import re

import pytest
from helpers.support import REPOSITORY
from helpers.walking import each_of
from seglog_conformance.known import WITHHELD, read_known
from seglog_conformance.registry import adapters

from tools.docs import causes, conformance_pages, pairs_page

WANTED = 3
LIBRARIES = sorted({adapter.homepage for adapter in adapters()})
ALL, FEW = causes.read_causes()
LINE = re.compile(r"[\w./-]+\.(py|pyx|c|go|rs|js|java|mod):\d+")


def groups(library: str) -> set[str]:
    """Return the reasons of known failures of a library, whatever it is asked through, that are published."""
    return {
        entry.reason
        for adapter in adapters()
        if adapter.homepage == library
        for version in ("", *adapter.asked)
        for entry in read_known(adapter.name, version).entries.values()
        if entry.disclosure != WITHHELD
    }


@each_of("library", LIBRARIES)
def test_a_library_has_three_causes_or_a_reason(library: str) -> None:
    found = [one for one in ALL if one.library == library]
    reasons = [one.reason for one in FEW if one.library == library]
    assert len({one.reason for one in found}) == len(found)
    assert (len(found), len(reasons)) in {(WANTED, 0), *((count, 1) for count in range(WANTED))}


def test_causes_are_about_libraries_that_there_are() -> None:
    assert {one.library for one in ALL} | {one.library for one in FEW} == set(LIBRARIES)


@each_of("one", ALL, ids=lambda one: f"{one.library.rpartition('/')[2]}: {one.reason[:40]}")
def test_a_cause_is_about_a_group_of_failures_and_names_a_line(one: causes.Cause) -> None:
    assert one.reason in groups(one.library)
    assert_names_a_line(one)


@pytest.mark.parametrize("one", causes.read_pairs(), ids=lambda one: one.reason[:40])
def test_what_only_pairs_show_has_a_cause_with_a_line(one: causes.Cause) -> None:
    assert one.library in LIBRARIES
    assert_names_a_line(one)
    assert f"{one.reason}\n\nCause, in {one.version}: " in pairs_page.pages("")[pairs_page.PAGE]


def assert_names_a_line(one: causes.Cause) -> None:
    assert one.where
    assert all(LINE.fullmatch(line) for line in one.where)
    assert one.version
    assert all(text.endswith(".") for text in (one.cause, one.fix))


def test_the_page_of_an_implementation_shows_the_cause_and_the_fix_beside_its_group() -> None:
    page = conformance_pages.pages("")["docs/conformance/sarama.md"]
    shown = page.partition("A wrapper that the broker stamped is read with another time.")[2].partition("###")[0]
    assert "Cause, in 1.61.1: `consumer.go:833`." in shown
    assert "Suggested fix: " in shown


def test_the_page_of_an_implementation_names_the_file_that_lists_all_its_failures() -> None:
    pages = conformance_pages.pages("")
    named = {path: re.findall(r"`(conformance/known_failures/\S+\.toml)`", page) for path, page in pages.items()}
    assert named["docs/conformance/kafka-storage-2.8.2.md"] == ["conformance/known_failures/kafka-storage@2.8.2.toml"]
    for path, page in pages.items():
        files = [file for file in named[path] if "NAME" not in file]
        assert all((REPOSITORY / file).is_file() for file in files)
        assert bool(files) == ("## What does not pass" in page), path

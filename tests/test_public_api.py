"""The public names are there, documented, and cost nothing until they are used."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import tomllib
from enum import Enum

import pytest
from helpers.support import REPOSITORY

import seglog_format
from seglog_format.cli.version import VERSION

IMPORTED = (
    "import json, sys; before = set(sys.modules); import {}; print(json.dumps(sorted(set(sys.modules) - before)))"
)


def imported_by(module: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", IMPORTED.format(module)], capture_output=True, check=True, cwd=REPOSITORY
    )
    return set(json.loads(run.stdout))


@pytest.mark.parametrize("name", seglog_format.__all__)
def test_name_is_there_and_documented(name: str) -> None:
    value = getattr(seglog_format, name)
    assert inspect.getdoc(value)


def test_the_list_is_sorted_complete_and_shown_by_dir() -> None:
    assert seglog_format.__all__ == sorted(seglog_format.__all__)
    assert set(seglog_format.__all__) <= set(dir(seglog_format))


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'decode_everything'"):
        _ = seglog_format.decode_everything


def public_functions() -> list[tuple[str, object]]:
    values = [(name, getattr(seglog_format, name)) for name in seglog_format.__all__]
    methods = [
        (f"{name}.{attribute}", value)
        for name, kind in values
        if inspect.isclass(kind) and not issubclass(kind, (Exception, Enum))
        for attribute, value in vars(kind).items()
        if not attribute.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    ]
    return [(name, value) for name, value in values if inspect.isfunction(value)] + methods


def test_every_public_function_says_what_it_does() -> None:
    assert [name for name, function in public_functions() if not inspect.getdoc(function)] == []


def test_importing_the_package_imports_nothing_else() -> None:
    roots = {name.partition(".")[0] for name in imported_by("seglog_format")}
    assert roots - set(sys.stdlib_module_names) == {"seglog_format"}


@pytest.mark.parametrize("module", ["model", "names", "requirements", "errors"])
def test_the_lowest_layer_imports_no_third_party_package(module: str) -> None:
    roots = {name.partition(".")[0] for name in imported_by(f"seglog_format.{module}")}
    assert roots - set(sys.stdlib_module_names) == {"seglog_format"}


def test_the_command_line_starts_without_the_schemas() -> None:
    roots = {name.partition(".")[0] for name in imported_by("seglog_format.cli")}
    assert roots.isdisjoint({"construct", "rich", "zstandard", "lz4"})


def test_the_version_is_stated_once_in_effect() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION

"""The pages that draw the layers of packages agree with the import contract."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable


def contract() -> dict[str, int]:
    """Return the number of each name's layer, from the top."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (each["layers"] for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == "layers")
    return {
        name.removeprefix("seglog_format."): number
        for number, layer in enumerate(layers)
        for name in layer.split(" | ")
    }


def of_contributing() -> list[str]:
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return re.findall(r"\w+", page.split("```text\n", 1)[1].split("```", 1)[0])


def of_architecture() -> list[str]:
    page = (REPOSITORY / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    rows = page.split("|---|---|\n", 1)[1].split("\n\n", 1)[0].splitlines()
    return [name for row in rows for name in re.findall(r"`(\w+)/?`", row.split("|")[1])]


@pytest.mark.parametrize("names_on", [of_contributing, of_architecture])
def test_a_page_names_every_package_in_the_order_of_the_contract(names_on: Callable[[], list[str]]) -> None:
    layers, names = contract(), names_on()
    packages = {path.parent.name for path in (REPOSITORY / "seglog_format").glob("*/__init__.py")}
    assert packages - set(names) == set()
    assert len(names) == len(set(names))
    assert [layers[name] for name in names] == sorted(layers[name] for name in names)


def test_the_contract_has_every_package() -> None:
    packages = {path.parent.name for path in (REPOSITORY / "seglog_format").glob("*/__init__.py")}
    assert packages - set(contract()) == set()

"""A layout of an installed package, found by its entry point: the one that the how-to shows, word by word."""

from __future__ import annotations

import gzip
import re
import tomllib
from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY
from helpers.tier_cases import TierCase, tier_case

from seglog_format import open_partition, open_tier
from seglog_format.cli.main import run
from seglog_format.errors import UsageError
from seglog_format.tier.layouts import ENTRY_POINTS, LocalTierLayout, layout_named, layout_names

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "docs/how-to/read-my-bucket.md"


def block(kind: str, text: str) -> str:
    """Return the block of code on the page that holds a text."""
    found: list[str] = re.findall(rf"```{kind}\n(.*?)```", (REPOSITORY / PAGE).read_text("utf-8"), re.DOTALL)
    (only,) = (each for each in found if text in each)
    return only


@pytest.fixture
def case() -> TierCase:
    return tier_case("lts-4.4.0")


def install(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution with the page's module and entry point, for one test."""
    information = site / "my_package-1.0.dist-info"
    information.mkdir(parents=True)
    (site / "my_package.py").write_text(block("python", "class MyLayout"), "utf-8")
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    groups: dict[str, dict[str, str]] = tomllib.loads(block("toml", "entry-points"))["project"]["entry-points"]
    lines = [line for group, points in groups.items() for line in (f"[{group}]", *map(" = ".join, points.items()))]
    (information / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(site)


@pytest.fixture
def store(case: TierCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store the objects of a case as the other plug-in would have."""
    install(tmp_path / "site", monkeypatch)
    layout, target = layout_named("mine"), tmp_path / "store"
    for path in case.store.rglob("*"):
        stored = LocalTierLayout().parse(path.relative_to(case.store).as_posix()) if path.is_file() else None
        if stored is not None:
            other = target / layout.path_of(stored.id, stored.start_offset, stored.kind)
            other.parent.mkdir(parents=True, exist_ok=True)
            other.write_bytes(gzip.compress(path.read_bytes(), 1))
    return target


def test_a_partition_is_read_by_the_layout_of_another_package(store: Path, case: TierCase) -> None:
    directory = case.local / "orders-0"
    with (
        open_partition(directory, remote=open_tier(store)) as log,
        open_partition(directory, remote=case.opened()) as own,
    ):
        found = [(record.offset, record.key, record.value) for record in log.records()]
        assert found == [(record.offset, record.key, record.value) for record in own.records()]
        assert log.segments[0].path.endswith(".log.gz")


@pytest.mark.parametrize("options", [[], ["--layout", "mine"]], ids=["recognized", "named"])
def test_commands_take_it(store: Path, case: TierCase, tmp_path: Path, options: list[str]) -> None:
    fetched: dict[str, dict[str, bytes]] = {}
    for name, where, more in (("other", store, options), ("own", case.store, [])):
        run(["tier", "fetch", *more, "--topic", "orders", str(where), str(tmp_path / name)])
        fetched[name] = {path.name: path.read_bytes() for path in (tmp_path / name / "orders-0").iterdir()}
    assert fetched["other"] == fetched["own"]
    assert fetched["own"]


def test_it_is_known_where_it_is_installed_and_only_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "mine" not in layout_names()
    with pytest.raises(UsageError, match="no layout 'mine'"):
        layout_named("mine")
    install(tmp_path, monkeypatch)
    assert "mine" in layout_names()
    assert ENTRY_POINTS in block("toml", "entry-points")

"""Options and fixtures that every test module shares."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from helpers.support import need
from hypothesis import HealthCheck, settings

from proofs.kafka.oracle import RELEASES, TOOL_CHAIN, Oracle, OracleError

if TYPE_CHECKING:
    from collections.abc import Iterator

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")  # as Hypothesis does by itself in CI: a busy machine fails no property

TERMINAL_SETTINGS = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE")


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output is as wide and as plain as in a pipe, whatever terminal the tests are run from."""
    for name in TERMINAL_SETTINGS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True, scope="session")
def own_state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Servers keep what groups commit below a directory of this run."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="module")
def oracles() -> Iterator[dict[str, Oracle]]:
    """Kafka's own classes, by release; in CI, where the tool chain works, they have to answer."""
    need("Kafka", TOOL_CHAIN)
    with ExitStack() as stack:
        try:
            found = {release: stack.enter_context(Oracle(release)) for release in RELEASES}
        except OracleError as error:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(f"Kafka's classes could not be built: {error}")
        yield found


@pytest.fixture
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that cannot tell whether the real disk was waited for."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="ask all inputs where a test asks a share of them")
    parser.addoption("--req", metavar="ID", help="run only the tests that are marked with this requirement id")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    for item in items:
        if item.get_closest_marker("xdist_group") is None and (owner := _owner_of_what_is_shared(item)):
            item.add_marker(pytest.mark.xdist_group(owner))
    yield
    if config.getoption("loadgroup", default=False):
        for item in items:
            _name_group(item)
    if wanted := config.getoption("--req"):
        chosen = [item for item in items if any(wanted in mark.args for mark in item.iter_markers("req"))]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


def _owner_of_what_is_shared(item: pytest.Item) -> str | None:
    """Return a name for the tests that use the same things, so that one worker makes them, once.

    Workers take the largest groups first, so the single tests are left to keep both busy up to the end.
    """
    fixtures = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]
    if "spark" in fixtures:
        return "spark"
    return item.nodeid.partition("::")[0] if any(each[-1].scope == "module" for each in fixtures.values()) else None


def _name_group(item: pytest.Item) -> None:
    """Append the group of a test to its name, as xdist 3.8 means to do: pytest 9.2 passes over what it writes."""
    group = item.get_closest_marker("xdist_group")
    if group is not None and not item.nodeid.endswith(f"@{group.args[0]}"):
        item._id = item.id.parse(f"{item.nodeid}@{group.args[0]}")  # type: ignore[attr-defined]

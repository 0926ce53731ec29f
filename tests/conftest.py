"""Options and fixtures that every test module shares."""

from __future__ import annotations

import pytest

TERMINAL_SETTINGS = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE")


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output is as wide and as plain as in a pipe, whatever terminal the tests are run from."""
    for name in TERMINAL_SETTINGS:
        monkeypatch.delenv(name, raising=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--req", metavar="ID", help="run only the tests that are marked with this requirement id")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--req")
    if wanted is None:
        return
    chosen = [item for item in items if any(wanted in mark.args for mark in item.iter_markers("req"))]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen

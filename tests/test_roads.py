"""The page on architecture draws four roads; the calls that happen are these."""

from __future__ import annotations

import re
import shutil
import sys
from collections import deque
from functools import cache
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Final

import pytest
from helpers.support import REPOSITORY, bundled

import seglog_format
from seglog_format import Engine, RecoveryOptions, open_partition, recover, verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

PAGE: Final = REPOSITORY / "docs" / "explanation" / "architecture.md"
PACKAGE: Final = Path(seglog_format.__file__).parent
MAX_STEPS: Final = 20
FAR: Final = 32
"""Calls up the stack to look for a step of the road."""


def partition(tmp_path: Path) -> Path:
    return shutil.copytree(bundled("4.3.0/segs-fine") / "segs-fine-0", tmp_path / "segs-fine-0", dirs_exist_ok=True)


def records(path: Path) -> None:
    with open_partition(path) as log:
        deque(log.records(100, engine=Engine.PLAIN), maxlen=0)


def scan(path: Path) -> None:
    pytest.importorskip("pyarrow")
    with open_partition(path) as log:
        deque(log.scan(), maxlen=0)


def verified(path: Path) -> None:
    assert not list(verify(path, engine=Engine.PLAIN))


def recovered(path: Path) -> None:
    last = max(path.glob("*.log"))
    with last.open("r+b") as file:
        file.truncate(last.stat().st_size - 1)
    assert recover(path, options=RecoveryOptions(engine=Engine.PLAIN)).apply().plan.cut is not None


ROADS: Final[dict[str, Callable[[Path], None]]] = {
    "records": records,
    "scan": scan,
    "verify": verified,
    "recover": recovered,
}


def sections() -> dict[str, str]:
    """Return the page's text about each road."""
    found = re.findall(r"^### `(\w+)`.*?\n(.*?)(?=^##|\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return dict(found)


def steps_of(name: str) -> list[str]:
    return re.findall(r"^\| `([\w.]+)` \|", sections()[name], re.MULTILINE)


@cache
def name_of(code: CodeType) -> str | None:
    """Return module and function, if it is the package's and has a name."""
    path = Path(code.co_filename)
    if not path.is_relative_to(PACKAGE) or "<" in code.co_name:
        return None
    return ".".join((*path.relative_to(PACKAGE).with_suffix("").parts, code.co_qualname))


def stack_of(frame: FrameType | None) -> Iterator[str]:
    """Yield the functions of the package that are at work, the newest first."""
    for _ in range(FAR):
        if frame is None:
            return
        name = name_of(frame.f_code)
        if name is not None:
            yield name
        frame = frame.f_back


def traced(name: str, tmp_path: Path) -> list[tuple[str, ...]]:
    """Return the stack of each function of the package that runs, the function first; once for each caller of it."""
    run = ROADS[name]
    run(partition(tmp_path))  # what is loaded and compiled once is no part of the road
    path, seen = partition(tmp_path), set[tuple[CodeType, CodeType | None]]()
    stacks: list[tuple[str, ...]] = []

    def called(frame: FrameType, event: str, _: object) -> None:
        call = frame.f_code, None if frame.f_back is None else frame.f_back.f_code
        if event == "call" and call not in seen:
            seen.add(call)
            if name_of(frame.f_code) is not None:
                stacks.append(tuple(stack_of(frame)))

    sys.setprofile(called)
    try:
        run(path)
    finally:
        sys.setprofile(None)
    return stacks


@pytest.mark.parametrize("name", ROADS)
def test_a_road_is_what_the_page_says(name: str, tmp_path: Path) -> None:
    steps, stacks = steps_of(name), traced(name, tmp_path)
    assert len(steps) <= MAX_STEPS
    order = list(dict.fromkeys(stack[0] for stack in stacks))
    assert [step for step in steps if step not in order] == [], "the page names functions that are not called"
    assert sorted(steps, key=order.index) == steps, "the page names them in another order"
    beside = {stack[0].split(".", 1)[0] for stack in stacks} - {step.split(".", 1)[0] for step in steps}
    reported = re.search(r"^Besides: (.*)\.$", sections()[name], re.MULTILINE)
    assert reported, f"the page does not say what the road uses besides: {sorted(beside)}"
    assert re.findall(r"`(\w+)`", reported[1]) == sorted(beside)


@pytest.mark.parametrize("name", ROADS)
def test_nothing_runs_far_from_a_road(name: str, tmp_path: Path) -> None:
    steps = frozenset(steps_of(name))
    most = int(re.findall(r"at most (\d+) calls", " ".join(PAGE.read_text(encoding="utf-8").split()))[0])
    far = {}
    for stack in traced(name, tmp_path):
        of_packages = [caller for caller in stack if (PACKAGE / caller.split(".", 1)[0]).is_dir()]
        distance = next((number for number, caller in enumerate(of_packages) if caller in steps), len(of_packages))
        if distance > most:
            far[stack[0]] = of_packages[: most + 2]
    assert not far, list(islice(far.values(), 3))


def test_a_missing_step_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text(encoding="utf-8").replace("codec.framing.frame_at", "codec.framing.no_such"))
    monkeypatch.setattr(f"{__name__}.PAGE", page)
    with pytest.raises(AssertionError, match="not called"):
        test_a_road_is_what_the_page_says("records", tmp_path)

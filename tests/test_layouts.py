"""Fixed layouts come from the declarations, and swapping two fields of one is noticed by reading and by writing."""

from __future__ import annotations

import struct
import subprocess
import sys
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from construct import Int16ub, Int32ul, Struct
from helpers import layout_bytes
from helpers.support import REPOSITORY
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.packing import FixedLayout
from tools import make_layouts

if TYPE_CHECKING:
    from collections.abc import Callable

LAYOUTS = make_layouts.declared_codes()


def swapped(name: str, first: str, second: str) -> str:
    """Return the layouts' module, with two neighbouring fields of one declaration swapped."""
    order = list(LAYOUTS[name])
    at = order.index(first)
    order[at : at + 2] = second, first
    return make_layouts.module_text({**LAYOUTS, name: {field: LAYOUTS[name][field] for field in order}})


SWAPS = {
    f"{name}: {first} <-> {second}": swapped(name, first, second)
    for name, codes in LAYOUTS.items()
    for first, second in pairwise(codes)
}

EVERY_WAY = " ".join(layout_bytes.CHECKS)
READ_ONLY = {"ENTRY_PREFIX": "reading writing reference-reading"}
"""The reference writes the prefix as the first fields of a header."""


def test_layouts_are_those_of_the_declarations() -> None:
    assert make_layouts.TARGET.read_text(encoding="utf-8") == make_layouts.module_text(LAYOUTS), (
        "run python -m tools.make_layouts"
    )


@pytest.mark.usefixtures("no_fsync")
@pytest.mark.parametrize(
    "check", dict.fromkeys(chain.from_iterable(layout_bytes.CHECKS.values())), ids=lambda check: check.__name__
)
def test_bytes_are_read_and_written_as_declared(check: Callable[[], bool]) -> None:
    assert list(layout_bytes.problems((check,))) == []


@pytest.fixture(scope="module")
def noticed() -> dict[str, str]:
    """Return what notices each swap."""
    text = "".join(f"== {name}\n{module}" for name, module in SWAPS.items())
    ran = subprocess.run(
        [sys.executable, Path(layout_bytes.__file__)],
        input=text,
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
        env={"PYTHONPATH": str(REPOSITORY)},
    )
    return dict(line.split(" noticed by ") for line in ran.stdout.splitlines())


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_swap_of_two_neighbours_is_noticed(name: str, noticed: dict[str, str]) -> None:
    swaps = [swap for swap in SWAPS if swap.startswith(f"{name}: ")]
    assert len(swaps) == len(LAYOUTS[name]) - 1
    expected = {EVERY_WAY, READ_ONLY.get(name, EVERY_WAY)}
    assert [swap for swap in swaps if noticed[swap] not in expected] == []


@given(st.permutations(["a", "b", "c", "d"]), st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**32 - 1))
def test_values_come_and_go_in_the_order_of_the_names(names: list[str], low: int, high: int) -> None:
    layout = FixedLayout(a="q", b="l", c="L", d="h")
    values = {"a": low << 31, "b": low, "c": high, "d": -1}
    stored = struct.pack(">qlLh", *values.values())
    packer = layout.packer(*names)
    asked = tuple(values[name] for name in names)
    assert packer.pack(*asked) == stored
    assert packer.unpack_from(b"\1" + stored, 1) == asked
    assert list(packer.iter_unpack(stored * 2)) == [asked, asked]
    assert {name: layout.slot(name).read(stored) for name in names} == values


def test_names_that_are_not_the_fields_are_refused() -> None:
    with pytest.raises(ValueError, match="the fields are a, b, not a, c"):
        FixedLayout(a="q", b="l").packer("a", "c")


def test_only_big_endian_numbers_have_codes() -> None:
    with pytest.raises(TypeError, match="size is not a big-endian number"):
        make_layouts.field_codes(Struct("count" / Int16ub, "size" / Int32ul))

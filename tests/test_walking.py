"""Walks over many inputs: each that fails is named, and none sees another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from helpers.walking import each_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def stops_at_once(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("maxfail") == 1)


def test_every_input_that_fails_is_named(request: pytest.FixtureRequest, *, stops_at_once: bool) -> None:
    @each_of("number", range(6))
    def every_other_fails(number: int) -> None:
        assert number % 2 == 0, f"{number} is refused"

    with pytest.raises(ExceptionGroup) as caught:
        every_other_fails(request=request)
    if not stops_at_once:
        assert caught.value.message == "3 of 6 inputs fail:\n  1\n  3\n  5\n"
        assert [error.__notes__ for error in caught.value.exceptions] == [["with 1"], ["with 3"], ["with 5"]]


def test_an_input_that_skips_hides_no_other(request: pytest.FixtureRequest) -> None:
    seen: list[int] = []

    @each_of("number", range(3))
    def first_skips(number: int) -> None:
        if number == 0:
            pytest.skip("not here")
        seen.append(number)

    first_skips(request=request)
    assert seen == [1, 2]


def test_a_walk_whose_every_input_skips_is_skipped(request: pytest.FixtureRequest) -> None:
    @each_of("number", range(3))
    def all_skip(number: int) -> None:
        pytest.skip(f"{number} is not here")

    with pytest.raises(pytest.skip.Exception, match="0 is not here"):
        all_skip(request=request)


def test_a_walk_over_nothing_is_refused() -> None:
    with pytest.raises(AssertionError, match="a walk over nothing"):
        each_of("number", [])


@each_of(("number", "letter"), [(1, "a"), (2, "b")])
def test_each_input_has_a_directory_of_its_own(number: int, letter: str, tmp_path: Path) -> None:
    assert not list(tmp_path.iterdir())
    (tmp_path / letter).write_text(str(number))


def test_an_input_that_does_not_raise_as_it_should_is_named_too(request: pytest.FixtureRequest) -> None:
    @each_of("number", range(4))
    def every_other_raises_nothing(number: int) -> None:
        with pytest.raises(ZeroDivisionError):
            1 // (number % 2)

    with pytest.raises(BaseExceptionGroup) as caught:
        every_other_raises_nothing(request=request)
    if request.config.getoption("maxfail") != 1:
        assert caught.value.message == "2 of 4 inputs fail:\n  1\n  3\n"


SEEN: set[int] = set()


@pytest.mark.xdist_group("share")
@pytest.mark.parametrize("variant", ["first", "second", "third"])
@each_of("number", range(12), share=3)
def test_variants_ask_all_inputs_together(variant: str, number: int) -> None:
    assert variant
    SEEN.add(number)


@pytest.mark.xdist_group("share")
def test_no_input_was_left_out(request: pytest.FixtureRequest) -> None:
    """All variants ran in this process, as groups of xdist have it: what a group makes is made once."""
    assert SEEN in (set(), set(range(12)))
    assert hasattr(request.config, "workerinput") <= request.node.nodeid.endswith("@share")

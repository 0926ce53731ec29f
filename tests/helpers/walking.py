"""Tests that ask one question of many inputs, and name every input that fails."""

from __future__ import annotations

import shutil
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest
from _pytest.mark import ParameterSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Test = TypeVar("Test", bound=Callable[..., None])

SHOWN: Final = 5
"""Failures of one walk whose traceback is printed. Every input that fails is named."""


def each_of(
    names: str | tuple[str, ...], inputs: Iterable[Any], *, ids: Callable[[Any], str] = str, share: int = 1
) -> Callable[[Test], Test]:
    """Turn a test of one input into one test of many.

    Each input gets a `tmp_path` of its own, and what it patches by `monkeypatch` ends with it. With ``-x``, the first
    failure ends the walk. An input whose test skips is passed over; if every one does, the walk is skipped.

    Args:
        names: the parameter of the test that gets the input, or those that get the items of a tuple.
        inputs: any number of them.
        ids: names an input, or each item of one that is a tuple.
        share: of so many inputs one is asked, unless pytest is run with ``--whole``. Successive variants of the test,
            by its other parameters, ask successive inputs: as many variants as this number ask all of them together.
    """
    taken = (names,) if isinstance(names, str) else names
    values = [(value,) if isinstance(names, str) else tuple(value) for value in inputs]
    assert values, f"a walk over nothing: {taken}"
    assert not isinstance(values[0][0], ParameterSet), "the marks of pytest.param would be lost"

    def decorate(test: Test) -> Test:
        form = signature(test)
        others = [parameter for name, parameter in form.parameters.items() if name not in {*taken, "request"}]

        @wraps(test)
        def walked(*, request: pytest.FixtureRequest, **fixtures: Any) -> None:  # noqa: ANN401 - of the test
            failed: list[tuple[str, BaseException]] = []
            skipped: list[BaseException] = []
            apart = 1 if request.config.getoption("whole") else share
            asked = values[_variant(request) % apart :: apart]
            for number, value in enumerate(asked):
                given = dict(zip(taken, value, strict=True))
                try:
                    with pytest.MonkeyPatch.context() as patched:
                        test(**given, **_of_one_input(fixtures, number, patched))
                except pytest.skip.Exception as reason:
                    skipped.append(reason)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - each is a failure of this input
                    failed.append((", ".join(map(ids, value)), error))
                    if request.config.getoption("maxfail") == 1:
                        break
            if failed:
                inputs_that_fail = "\n  ".join(name for name, _ in failed)
                message = f"{len(failed)} of {len(asked)} inputs fail:\n  {inputs_that_fail}\n"
                raise BaseExceptionGroup(message, list(_with_names(failed[:SHOWN])))
            if len(skipped) == len(asked):
                raise skipped[0]

        request = Parameter("request", Parameter.KEYWORD_ONLY)
        keywords = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in others]
        walked.__signature__ = form.replace(parameters=[*keywords, request])  # type: ignore[attr-defined]
        return walked  # type: ignore[return-value]

    return decorate


def _variant(request: pytest.FixtureRequest) -> int:
    """Return the number of a test among those of its function that differ in parameters."""
    call = getattr(request.node, "callspec", None)
    return 0 if call is None else sum(call.indices.values())


def _of_one_input(fixtures: dict[str, Any], number: int, patched: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the fixtures of a test as one input sees them: as if no other had been there."""
    own = dict(fixtures)
    if "monkeypatch" in own:
        own["monkeypatch"] = patched
    if "capsys" in own:
        own["capsys"].readouterr()
    if "tmp_path" in own:
        shutil.rmtree(own["tmp_path"] / str(number - 1), ignore_errors=True)
        own["tmp_path"] = own["tmp_path"] / str(number)
        own["tmp_path"].mkdir()
    return own


def _with_names(failed: Iterable[tuple[str, BaseException]]) -> Iterator[BaseException]:
    for name, error in failed:
        error.add_note(f"with {name}")
        yield error

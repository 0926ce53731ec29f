"""Modules import each other in one direction only: there is no circle, neither at run time nor between types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grimp
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Graph = dict[str, set[str]]

PACKAGES = ("seglog_format", "seglog_conformance")


def imports(package: str, *, with_types: bool) -> Graph:
    """Return what each module of a package imports of it, inside of functions too.

    Args:
        package: name of the package.
        with_types: count imports for type checkers as well.
    """
    graph = grimp.build_graph(package, exclude_type_checking_imports=not with_types, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return groups of modules that all lead to each other, each sorted."""
    reached = {module: set(_reached(graph, module)) for module in graph}
    groups = {
        frozenset({module, *(other for other in found if module in reached[other])})
        for module, found in reached.items()
        if module in found
    }
    return sorted(map(sorted, groups))


def _reached(graph: Mapping[str, set[str]], module: str) -> Iterator[str]:
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        for other in graph[waiting.pop()] - seen:
            seen.add(other)
            waiting.append(other)
            yield other


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [["a", "b"]]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"e"}, "e": {"d"}}, [["a", "b", "c"], ["d", "e"]]),
        ({"a": {"a"}}, [["a"]]),
    ],
)
def test_circles_are_found(graph: Graph, expected: list[list[str]]) -> None:
    assert circles(graph) == expected


def test_an_import_inside_of_a_function_counts_and_one_for_types_only_with_types() -> None:
    names = ("log.partition", "values.decoder", "log.remote_store")
    importer, lazy, typed = (f"seglog_format.{name}" for name in names)
    at_run_time, all_ = (imports("seglog_format", with_types=each)[importer] for each in (False, True))
    assert lazy in at_run_time
    assert typed not in at_run_time
    assert typed in all_


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("with_types", [False, True], ids=["run time", "types"])
def test_no_module_imports_itself_in_a_circle(package: str, with_types: bool) -> None:  # noqa: FBT001
    assert circles(imports(package, with_types=with_types)) == []

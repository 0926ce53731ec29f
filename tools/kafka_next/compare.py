"""Comparison of the facts of two releases: new, removed and changed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Facts = dict[str, str]
Json = dict[str, Any]


def compared(old: Mapping[str, Facts], new: Mapping[str, Facts]) -> Json:
    """Return new, removed and changed facts.

    Args:
        old: facts of the base, by name.
        new: facts of the release, by name.

    Returns:
        ``new`` and ``gone``, facts by name, and ``changed``: by name and fact, the value before and after. Empty parts
        are left out.
    """
    found: Json = {
        "new": {name: new[name] for name in sorted(new.keys() - old.keys())},
        "gone": {name: old[name] for name in sorted(old.keys() - new.keys())},
        "changed": {
            name: _changed(old[name], new[name]) for name in sorted(old.keys() & new.keys()) if old[name] != new[name]
        },
    }
    return {name: each for name, each in found.items() if each}


def _changed(old: Facts, new: Facts) -> dict[str, list[str | None]]:
    names = sorted(old.keys() | new.keys())
    return {name: [old.get(name), new.get(name)] for name in names if old.get(name) != new.get(name)}


def compared_trees(old: Mapping[str, Mapping[str, Facts]], new: Mapping[str, Mapping[str, Facts]]) -> Json:
    """Return the same for things with parts, such as messages with fields: changed things are compared by parts."""
    found: Json = {
        "new": {name: dict(new[name]) for name in sorted(new.keys() - old.keys())},
        "gone": {name: dict(old[name]) for name in sorted(old.keys() - new.keys())},
        "changed": {
            name: compared(old[name], new[name]) for name in sorted(old.keys() & new.keys()) if old[name] != new[name]
        },
    }
    return {name: each for name, each in found.items() if each}

"""The known layouts: two built-in ones, and those of installed packages."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

from seglog_format.errors import UsageError
from seglog_format.names import printable
from seglog_format.tier.aiven_layout import AivenLayout
from seglog_format.tier.local_layout import LocalTierLayout

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.tier.layout import TierLayout

ENTRY_POINTS: Final = "seglog_format.tier_layouts"
"""The group of entry points of layouts: each is a class or another callable that returns a layout."""

BUILT_IN: Final[dict[str, type[LocalTierLayout | AivenLayout]]] = {
    LocalTierLayout.name: LocalTierLayout,
    AivenLayout.name: AivenLayout,
}


def layout_names() -> list[str]:
    """Return the names of all layouts."""
    return sorted({*BUILT_IN, *entry_points(group=ENTRY_POINTS).names})


def layout_named(name: str) -> TierLayout:
    """Return a layout by its name.

    Raises:
        UsageError: there is no layout of that name.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]()
    found = entry_points(group=ENTRY_POINTS, name=name)
    if not found:
        msg = f"no layout {printable(name)!r}: there are {', '.join(layout_names())}"
        raise UsageError(msg)
    layout: TierLayout = next(iter(found)).load()()
    return layout


def layout_of(paths: Iterable[str], address: str) -> TierLayout:
    """Return the layout that recognizes the most objects.

    Args:
        paths: of the objects of a store.
        address: of the store, for errors.

    Raises:
        UsageError: no layout recognizes any object.
    """
    layouts = [layout_named(name) for name in layout_names()]
    counts: Counter[str] = Counter()
    for path in paths:
        counts.update(layout.name for layout in layouts if layout.parse(path) is not None)
    if not counts:
        msg = f"{printable(address)}: no object of a known layout ({', '.join(layout_names())})"
        raise UsageError(msg)
    best = counts.most_common(1)[0][0]
    return next(layout for layout in layouts if layout.name == best)

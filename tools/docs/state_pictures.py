"""State diagrams: the effect of a broker's start on a log, and the names of files during a replacement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tools.docs.pictures import ACCENT, INK, PAPER, SOFT, box, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

RECOVERY: Final = "docs/assets/recovery-states.svg"
SWAP: Final = "docs/assets/swap-states.svg"
LINE: Final = 15
"""Height of a line of text."""


@dataclass(frozen=True, slots=True)
class State:
    """A box: where it is, its title, and lines below that."""

    x: int
    y: int
    title: str
    lines: tuple[str, ...] = ()
    width: int = 190
    is_end: bool = False

    @property
    def height(self) -> int:
        """Return the height that the text needs."""
        return 30 + LINE * len(self.lines)


@dataclass(frozen=True, slots=True)
class Arrow:
    """A line through some points, with a label beside its middle."""

    points: tuple[tuple[int, int], ...]
    label: str
    at: tuple[int, int]
    is_crash: bool = False


RECOVERY_STATES: Final = (
    State(20, 20, "start", ("lock the log directory",), width=210),
    State(20, 125, "finish replacements", (".swap files: SEG-RCV-021", "leftovers go: SEG-RCV-020"), width=210),
    State(350, 125, "trust segment", ("only names and sizes are read:", "SEG-RCV-001, SEG-RCV-002"), width=220),
    State(350, 255, "scan segment", ("entry by entry: SEG-RCV-003", "new indexes: SEG-RCV-025"), width=220),
    State(680, 255, "cut", ("before that entry; segments", "above go: SEG-RCV-004"), width=200),
    State(350, 390, "correct side files", ("snapshots: SEG-RCV-027", "leader epochs: SEG-RCV-028"), width=220),
    State(680, 390, "open", ("the log end offset is known",), width=200, is_end=True),
)
RECOVERY_ARROWS: Final = (
    Arrow(((125, 65), (125, 123)), "list the files", (135, 98)),
    Arrow(((230, 155), (348, 155)), "each segment", (248, 147)),
    Arrow(((460, 185), (460, 253)), "holds or follows the recovery point after a crash,", (470, 212)),
    Arrow(((460, 185), (460, 253)), "or has no offset index (SEG-RCV-006)", (470, 228)),
    Arrow(((570, 285), (678, 285)), "bad entry", (594, 277)),
    Arrow(((350, 170), (300, 170), (300, 420), (348, 420)), "trusted, and the last", (165, 300)),
    Arrow(((460, 315), (460, 388)), "the last, and whole", (340, 350)),
    Arrow(((780, 315), (780, 355), (510, 355), (510, 388)), "the log ends here", (590, 347)),
    Arrow(((570, 415), (678, 415)), "", (0, 0)),
)
SWAP_STATES: Final = (
    State(20, 30, "N.log.cleaned", ("being written: no part of", "the log (SEG-PDR-009)"), width=200),
    State(330, 30, "N.log.swap", ("complete: counts in place of", "what it covers (SEG-PDR-010)"), width=220),
    State(660, 30, "N.log", ("part of the log",), width=200, is_end=True),
    State(330, 190, "old M.log", ("part of the log until a", ".swap file covers it"), width=220),
    State(660, 190, "M.log.deleted", ("no part of the log",), width=200),
    State(20, 190, "removed", (), width=200),
    State(660, 310, "removed", (), width=200),
)
SWAP_ARROWS: Final = (
    Arrow(((220, 50), (328, 50)), "all flushed; rename, greatest N first", (150, 22)),
    Arrow(((550, 50), (658, 50)), "rename, lowest N first", (548, 22)),
    Arrow(((120, 92), (120, 188)), "crash: SEG-RCV-020", (128, 145), is_crash=True),
    Arrow(((550, 75), (600, 75), (600, 58), (658, 58)), "crash: SEG-RCV-021", (556, 108), is_crash=True),
    Arrow(((550, 210), (658, 210)), "rename", (580, 202)),
    Arrow(((760, 237), (760, 308)), "after a delay", (768, 278)),
)


def pages() -> dict[str, str]:
    """Return both pictures, by their paths below the repository."""
    return {
        RECOVERY: picture("What a start does to a log", (900, 470), RECOVERY_STATES, RECOVERY_ARROWS),
        SWAP: picture("Names during a replacement", (880, 350), SWAP_STATES, SWAP_ARROWS),
    }


def picture(title: str, size: tuple[int, int], states: Iterable[State], arrows: Iterable[Arrow]) -> str:
    """Return one diagram.

    Args:
        title: its title, also for screen readers.
        size: width and height.
        states: its boxes.
        arrows: its lines.
    """
    width, height = size
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"><title>{title}</title>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *(marker(name, colour) for name, colour in (("end", SOFT), ("crash", ACCENT))),
        *(line for arrow in arrows for line in _arrow(arrow)),
        *(line for state in states for line in _state(state)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def marker(name: str, colour: str) -> str:
    """Return an arrowhead."""
    shape = f'<path d="M0,0 L8,4 L0,8 z" fill="{colour}"/>'
    return f'<marker id="{name}" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">{shape}</marker>'


def _arrow(arrow: Arrow) -> Iterator[str]:
    colour, head = (ACCENT, "crash") if arrow.is_crash else (SOFT, "end")
    points = " ".join(f"{x},{y}" for x, y in arrow.points)
    dashes = ' stroke-dasharray="6 3"' if arrow.is_crash else ""
    yield (
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"{dashes}'
        f' marker-end="url(#{head})"/>'
    )
    if arrow.label:
        yield text(*arrow.at, arrow.label, fill=colour if arrow.is_crash else INK)


def _state(state: State) -> Iterator[str]:
    fill = "#dcfce7" if state.is_end else PAPER
    yield box(state.x, state.y, state.width, state.height, fill, SOFT, title=state.title, heavy=state.is_end)
    yield text(state.x + 10, state.y + 20, state.title, size=14, mono=True)
    for number, line in enumerate(state.lines, start=1):
        yield text(state.x + 10, state.y + 20 + LINE * number, line, fill=SOFT)

"""Standard output for data, standard error for everything else: progress, messages, missing offsets."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections import deque
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format import names
from seglog_format.errors import FormatError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from seglog_format.lines import LineOptions, Source
    from seglog_format.log.gaps import Gap, GapWatch
    from seglog_format.log.listing import PartitionListing


# -- how far a command is: one line on standard error, if that is a terminal; it is erased before other output ---------


ERASE: Final = "\r\x1b[K"
FIRST_SECONDS: Final = 0.5
"""Work that ends sooner shows nothing."""
REDRAW_SECONDS: Final = 0.1
ESTIMATE_SECONDS: Final = 2.0
ESTIMATE_SHARE: Final = 0.02
"""Time and share of the work from which on the time left is estimated."""
MINUTE: Final = 60
HOUR: Final = 3600
LONGEST_ESTIMATE: Final = 100 * HOUR
BAR: Final = 20


class Progress:
    """The line of one piece of work.

    Args:
        label: name of the work.
        total: the value at the end, in any unit.
        is_drawn: whether there is a terminal to draw it on.
        clock: seconds, from any start.
    """

    def __init__(
        self, label: str, total: int, *, is_drawn: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._label, self._total, self._is_drawn, self._clock = label, max(total, 1), is_drawn, clock
        self._begun = self._drawn = clock()
        self._share = 0.0
        self._is_shown = False

    def update(self, done: int) -> None:
        """Note the value that is reached; draw the line if it is time."""
        self._share = min(max(done / self._total, 0.0), 1.0)
        if not self._is_drawn:
            return
        now = self._clock()
        if now - self._begun >= FIRST_SECONDS and now - self._drawn >= REDRAW_SECONDS:
            self._drawn = now
            self._is_shown = True
            columns = shutil.get_terminal_size().columns
            sys.stderr.write(ERASE + self.text(now)[: columns - 1])
            sys.stderr.flush()

    def text(self, now: float) -> str:
        """Return the line at a time of the clock."""
        bar = "#" * round(self._share * BAR)
        return f"{self._label} [{bar:<{BAR}}] {self._share:4.0%}{self._time_left(now - self._begun)}"

    def _time_left(self, seconds: float) -> str:
        if seconds < ESTIMATE_SECONDS or self._share < ESTIMATE_SHARE:
            return ""
        left = seconds * (1 - self._share) / self._share
        return f"  {duration_text(left)} left" if left <= LONGEST_ESTIMATE else ""

    def hide(self) -> None:
        """Erase the line; the next update draws it again."""
        if self._is_shown:
            self._is_shown = False
            sys.stderr.write(ERASE)
            sys.stderr.flush()

    def summary(self) -> str:
        """Return how far the work came, for the message after an interruption."""
        return f"{self._label.lower()} was {self._share:.0%} done after {duration_text(self._clock() - self._begun)}"


_running: list[Progress] = []
"""The work in progress, and the work that was in progress when an exception ended it."""


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how far the work is, if standard error is a terminal.

    Args:
        label: name of the work.
        total: the value at the end, in any unit.

    Yields:
        A function to call with the value reached.
    """
    shown = Progress(label, total, is_drawn=sys.stderr.isatty())
    _running[:] = [shown]
    try:
        yield shown.update
    finally:
        shown.hide()
    _running.clear()


def summing(advance: Callable[[int], None]) -> Callable[[int], None]:
    """Return a callback for sizes that passes on their running sum."""
    done = 0

    def add(size: int) -> None:
        nonlocal done
        done += size
        advance(done)

    return add


def hide_progress() -> None:
    """Erase the line, before something else is printed."""
    for shown in _running:
        shown.hide()


def interrupted_text() -> str:
    """Return the message after Ctrl-C: how far the work came."""
    return "; ".join(["interrupted", *(shown.summary() for shown in _running)])


def duration_text(seconds: float) -> str:
    """Return a time in its largest units: ``8 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = max(round(seconds), 0)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE} s"
    return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"


# -- text for people: escaped for terminals, sizes, times --------------------------------------------------------------


EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SIZE_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
KIBI: Final = 1024


def printable(text: str) -> str:
    r"""Escape everything that could control a terminal, as ``\x1b``, ``\u202e`` and the like."""
    return text if text.isprintable() else names.printable(text, len(text))


def time_text(timestamp_ms: int) -> str:
    """Return an instant in UTC with milliseconds; the bare number if no calendar has it, ``-`` for none."""
    if timestamp_ms == -1:
        return "-"
    try:
        moment = EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms}ms"
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{timestamp_ms % 1000:03d}Z"


def size_text(size: int) -> str:
    """Return a size in the largest unit that keeps the number above 1: ``999 B``, ``1.5 KiB``."""
    if size < KIBI:
        return f"{size} B"
    amount, unit = float(size), 0
    while amount >= KIBI and unit < len(SIZE_UNITS) - 1:
        amount, unit = amount / KIBI, unit + 1
    return f"{amount:.1f} {SIZE_UNITS[unit]}"


def count_text(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 batch``, ``2 batches``."""
    if count == 1:
        return f"1 {noun}"
    plural = noun + ("es" if noun.endswith(("ch", "x", "s")) else "s")
    if noun.endswith("y"):
        plural = noun[:-1] + "ies"
    return f"{count:,} {plural}"


# -- standard output for data ------------------------------------------------------------------------------------------


SHOWN_SIZE: Final = 4096
"""Maximum bytes of a key, value or header, and maximum headers of a record, that text shows."""
REPORTED: Final[deque[str]] = deque(maxlen=1000)
"""The latest messages on standard error."""
LONG_SIZE: Final = 2**16
"""Bytes of a value, or items of a list, beyond which JSON is written in pieces."""


@cache
def _encode() -> Callable[[object], str]:
    """Return the JSON encoder: it escapes all but ASCII, so no byte of a file reaches a terminal unescaped."""
    from json import JSONEncoder  # commands that print no JSON start without it

    return JSONEncoder(separators=(",", ":")).encode


def write_json(value: dict[str, Any]) -> None:
    """Write one object on one line of standard output; in pieces if a value is too long for one text."""
    hide_progress()
    try:
        sys.stdout.write(as_given(_encode()(value), lambda name: _encode()(name)[1:-1]) + "\n")
    except TypeError:
        sys.stdout.writelines(_pieces(value))
        sys.stdout.write("\n")


def _pieces(value: object) -> Iterator[str]:
    """Yield the JSON text of a value in pieces."""
    from seglog_format.lines.options import LongBytes, LongList

    if isinstance(value, LongBytes):
        yield from value.json_pieces(_encode())
    elif isinstance(value, dict):
        yield "{"
        for number, (name, item) in enumerate(value.items()):
            yield f"{',' if number else ''}{_encode()(name)}:"
            yield from _pieces(item)
        yield "}"
    elif isinstance(value, list | LongList):
        yield "["
        for number, item in enumerate(value):
            yield "," if number else ""
            yield from _pieces(item)
        yield "]"
    else:
        yield _encode()(value)


def json_text(value: object) -> str:
    """Return the JSON text of a value."""
    return _encode()(value)


def write_text(text: str) -> None:
    """Write one line to standard output; the caller has made it `printable`."""
    hide_progress()
    sys.stdout.write(as_given(text, printable) + "\n")


def write_line(line: dict[str, Any] | str) -> None:
    """Write an object as JSON, or a text unchanged; see `write_json` and `write_text`."""
    if isinstance(line, dict):
        write_json(line)
    else:
        write_text(line)


def write_lines(lines: Iterable[dict[str, Any] | str]) -> None:
    """Write lines, each as `write_line` does."""
    for line in lines:
        write_line(line)


GIVEN: Final[dict[str, str]] = {}
"""What the user gave, standard input or a packed file, by the path of the temporary file with its bytes."""


def as_given(text: str, quote: Callable[[str], str] = str) -> str:
    """Return a text with the name that the user gave to standard input or a file, not that of its temporary file.

    Args:
        text: what is written.
        quote: how names are written in it.
    """
    for path, given in GIVEN.items():
        text = text.replace(quote(path), quote(given))
    return text


def diagnose(message: str) -> None:
    """Write one line to standard error, after what standard output has so far: where both go to one file, in order."""
    hide_progress()
    REPORTED.append(message)
    with suppress(OSError, ValueError):  # of a closed output: the end of the command says so
        sys.stdout.flush()
    click.echo(f"seglog: {printable(as_given(message))}", err=True)


# -- standard output as a terminal: its width, and colours, as ``--color`` says, unless ``NO_COLOR`` forbids them ------


CHOICE: Final = "SEGLOG_COLOR"
"""The variable of the environment that holds the choice; processes that a command starts follow it."""
CODES: Final = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36, "bold": 1, "dim": 2}


CHOICES: Final = ("auto", "always", "never")


def choose(when: str) -> None:
    """Set when text is coloured: one of `CHOICES`; ``auto`` leaves it to the terminal and to ``NO_COLOR``."""
    os.environ[CHOICE] = when
    has_colour.cache_clear()


@cache
def has_colour() -> bool:
    """Return whether text may be coloured."""
    if (choice := os.environ.get(CHOICE, "auto")) in {"always", "never"}:
        return choice == "always"
    is_shown = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return not os.environ.get("NO_COLOR") and (is_shown or bool(os.environ.get("FORCE_COLOR")))


def terminal_width() -> int | None:
    """Return the columns of the terminal; None where standard output is none, so programs get whole lines."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def styled(text: str, style: str) -> str:
    """Return the text in a colour or weight, if text may be coloured."""
    return f"\x1b[{CODES[style]}m{text}\x1b[0m" if has_colour() else text


# -- tables of plain text ----------------------------------------------------------------------------------------------


LEFT: Final = "<"
"""Prefix of a column's name that aligns its cells to the left; others are aligned to the right."""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], optional: Iterable[str] = ()) -> list[str]:
    """Return rows under their headings, each column as wide as necessary.

    Args:
        columns: their headings.
        rows: a cell for each column.
        optional: columns that are left out, one after the other, as long as a line is too long for the terminal; a
            last line names them.
    """
    names = [name.removeprefix(LEFT) for name in columns]
    cells = [names, *rows]
    widths = [max(len(row[index]) for row in cells) for index in range(len(columns))]
    kept = _kept(columns, widths, optional)
    hidden = [name for index, name in enumerate(names) if index not in kept]
    columns, widths = [columns[index] for index in kept], [widths[index] for index in kept]
    cells = [[row[index] for index in kept] for row in cells]
    lines = []
    for row in cells:
        parts = [
            cell.ljust(width) if name.startswith(LEFT) else cell.rjust(width)
            for name, cell, width in zip(columns, row, widths, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    left_out = [styled(f"left out at this width, shown by --json: {', '.join(hidden)}", "dim")] if hidden else []
    return [styled(lines[0], "bold"), *lines[1:], *left_out]


def _kept(columns: Sequence[str], widths: Sequence[int], optional: Iterable[str]) -> list[int]:
    """Return the numbers of the columns that fit the terminal together."""
    kept, width = list(range(len(columns))), terminal_width()
    for name in optional:
        if width is None or sum(widths[index] for index in kept) + 2 * (len(kept) - 1) <= width:
            break
        kept.remove(columns.index(name))
    return kept


# -- reports of offsets that are missing from partition directories ----------------------------------------------------


class GapLines:
    """Follows the logs of partition directories while they are read.

    Attributes:
        reached: the offset after the last one that was read of a log.
        is_any_missing: whether offsets were reported that are in no remote store either.
        is_any_tiered: whether offsets were reported that are in a remote store.
    """

    def __init__(self, options: LineOptions, *, joined: PartitionListing | None = None, as_json: bool = False) -> None:
        """Start before the first file.

        Args:
            options: the wanted offsets; others are not reported.
            joined: the only partition that is read, if that is together with its tiered segments.
            as_json: whether to write a line about each gap as well.
        """
        self._options, self._joined = options, joined
        self._as_json = as_json
        self._directory: Path | None = None
        self._with_logs = set[Path]()
        self._watch: GapWatch | None = None
        self._opened = frozenset[Path]()
        self.reached = 0
        self.is_any_missing = False
        self.is_any_tiered = False

    def begin(self, source: Source) -> None:
        """Begin a file; report what is missing before the first segment of its directory."""
        self.reached = source.base_offset
        if ".log" in source.path.suffixes and source.is_live and source.path.parent != self._directory:
            self._directory = source.path.parent
            self._with_logs.add(source.path.parent)
            self._watch = None
            with suppress(FormatError, UsageError):  # an unreadable file is reported when it is read
                self._watch = self._watch_over(source.path.parent)
                self._opened = frozenset(files.log for files in self._watch.listing.segments)
                self._watch.at_start(self._report)

    def come_to(self, source: Source, position: int, first: int | None) -> None:
        """Come to an entry of a log; report it if its first offset is known, and below the end of the entry before."""
        is_overlap = first is not None and first < self.reached
        if is_overlap and self._watch is not None and source.path in self._opened:
            self._watch.at_border(self._report, source.base_offset, self.reached, first, position)

    def end(self, source: Source) -> None:
        """Report what is missing after a file that was read."""
        following, until = source.next_base_offset, self._options.to_offset
        reached = max(self.reached, self._options.from_offset or 0)
        if self._watch is None or source.path not in self._opened:
            return
        if following is None and until is not None:
            return
        if (until is None or reached < until) and (following is None or reached < following):
            with suppress(FormatError, UsageError):
                self._watch.at_border(self._report, source.base_offset, reached, following)

    def finish(self, path: Path) -> None:
        """Report partitions at a path that have lost their logs, after the last file."""
        from seglog_format.names import parse_partition_directory

        for directory in sorted({path, *path.glob("*"), *path.glob("*/*")} - self._with_logs):
            with suppress(FormatError, UsageError):
                parse_partition_directory(directory.absolute().name)
                if directory.is_dir():
                    self._directory = directory
                    self._watch_over(directory).at_start(self._report)

    def _watch_over(self, directory: Path) -> GapWatch:
        from seglog_format.log.gaps import watch_over
        from seglog_format.log.listing import list_partition

        return watch_over(self._joined or list_partition(directory))

    def _report(self, gap: Gap) -> None:
        if self._options.overlaps(gap.first_offset, max(gap.next_offset, gap.first_offset + 1)):
            diagnose(str(gap))
            if self._as_json and self._directory is not None:
                write_json(gap_line(gap, self._directory))
            self.is_any_missing |= gap.is_loss
            self.is_any_tiered |= not gap.is_loss


def gap_line(gap: Gap, directory: Path) -> dict[str, Any]:
    """Return the line about offsets that are not in a partition directory for JSON."""
    return {"type": "missing" if gap.is_loss else "notHere", "directory": directory.name, **gap.as_object()}

"""Reports of offsets that are missing from partition directories."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seglog_format.cli.output import diagnose, write_json
from seglog_format.errors import FormatError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seglog_format.lines import LineOptions, Source
    from seglog_format.log.gaps import Gap, GapWatch
    from seglog_format.log.listing import PartitionListing


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
        if _is_log(source) and source.path.parent != self._directory:
            self._directory = source.path.parent
            self._with_logs.add(source.path.parent)
            self._watch = None
            with suppress(FormatError, UsageError):  # an unreadable file is reported when it is read
                self._watch = self._watch_over(source.path.parent)
                self._opened = frozenset(files.log for files in self._watch.listing.segments)
                self._watch.at_start(self._report)

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


def _is_log(source: Source) -> bool:
    return ".log" in source.path.suffixes and source.is_live


def gaps_of(watch: GapWatch, reached: Mapping[int, int]) -> tuple[Gap, ...]:
    """Return the gaps of `GapWatch.gaps`, except a segment of which nothing is readable: its own row says so."""
    from seglog_format.log.gaps import GapKind

    return tuple(gap for gap in watch.gaps(reached) if gap.kind is not GapKind.UNREADABLE)


def gap_line(gap: Gap, directory: Path) -> dict[str, Any]:
    """Return the line about offsets that are not in a partition directory for JSON."""
    return {"type": "missing" if gap.is_loss else "notHere", "directory": directory.name, **gap.as_object()}

"""Reports of missing offsets between files that a command reads in order, on standard error."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from seglog_format.cli.output import diagnose
from seglog_format.errors import FormatError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.lines import LineOptions, Source
    from seglog_format.log.gap_watch import GapWatch
    from seglog_format.log.gaps import Gap


class GapLines:
    """Follows the logs of partition directories while they are read.

    Attributes:
        reached: the offset after the last one that was read of a log.
        is_damage_met: whether damage hides offsets that were reported: a segment that is not the last ends early,
            with no whole entry.
    """

    def __init__(self, options: LineOptions) -> None:
        """Start before the first file.

        Args:
            options: the wanted offsets; others are not reported.
        """
        self._options = options
        self._directory: Path | None = None
        self._watch: GapWatch | None = None
        self.reached = 0
        self.is_damage_met = False

    def begin(self, source: Source) -> None:
        """Begin a file; report what is missing before the first segment of its directory."""
        self.reached = source.base_offset
        if _is_log(source) and source.path.parent != self._directory:
            self._directory = source.path.parent
            self._watch = None
            with suppress(FormatError, UsageError):  # an unreadable file is reported when it is read
                self._watch = self._watch_over(source.path.parent)
                if self._options.from_offset is None:
                    self._watch.at_start(self._report)

    def end(self, source: Source) -> None:
        """Report what is missing after a file that was read."""
        following, until = source.next_base_offset, self._options.to_offset
        reached = max(self.reached, self._options.from_offset or 0)
        if self._watch is None or not _is_log(source) or source.base_offset not in self._watch.listing.base_offsets:
            return
        if following is None and until is not None:
            return
        if (until is None or reached < until) and (following is None or reached < following):
            with suppress(FormatError, UsageError):
                self._watch.at_border(self._report, source.base_offset, reached, following)

    def _watch_over(self, directory: Path) -> GapWatch:
        from seglog_format.log.gap_watch import watch_over
        from seglog_format.log.listing import list_partition

        return watch_over(list_partition(directory), copy=self._options.copy)

    def _report(self, gap: Gap) -> None:
        if self._options.overlaps(gap.first_offset, max(gap.next_offset, gap.first_offset + 1)):
            diagnose(str(gap))
            self.is_damage_met |= gap.damage is not None


def _is_log(source: Source) -> bool:
    return source.path.suffix == ".log" and source.is_live

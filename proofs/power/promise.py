"""Promises about a log: the appended batches, and which of them must be there after a power cut."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Appended:
    """A batch as it must be in the log, its offset, and the offset after it."""

    data: bytes
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Compacted:
    """The replacement of the batches in a range of offsets.

    Attributes:
        start: base offset of the first replaced segment.
        end: offset after the last replaced segment.
        batches: the new batches.
        segments: base offsets of the replaced segments.
    """

    start: int
    end: int
    batches: tuple[Appended, ...]
    segments: tuple[int, ...] = ()

    def holds(self, batch: Appended) -> bool:
        """Return whether a batch is one of those that are replaced."""
        return self.start <= batch.start < self.end

    def left(self, inside: list[Appended]) -> list[Appended]:
        """Return the old batches that a power cut may leave after the new ones.

        Recovery recognizes replaced segments by the offsets in the replacement. Segments after these offsets, of which
        no record was kept, do not count as replaced: they remain until they are compacted again.
        """
        end = self.batches[-1].end if self.batches else self.start
        first = next((base for base in self.segments[1:] if base >= end), self.end)
        return [batch for batch in inside if batch.start >= first]


@dataclass(frozen=True, slots=True)
class Promise:
    """The required contents of a log after a power cut.

    Attributes:
        appended: batches of which the log is a run; it begins with the first that may not be deleted, or before.
        acknowledged: offset below which everything was reported as being on the disk.
        start: offset at or below which batches that end there may be deleted, the first ones first.
        groups: groups of segments that are being compacted, each replaced as a whole.
    """

    appended: tuple[Appended, ...] = ()
    acknowledged: int = 0
    start: int = 0
    groups: tuple[Compacted, ...] = ()

    @property
    def given_out(self) -> int:
        """Return the offset below which all offsets belong to records that must be there, or were removed for good.

        The recovery point may be higher: a follower leaves out the same offsets as its leader.
        """
        known = max((each.end for each in self.appended if each.start < self.acknowledged), default=0)
        return max(known, self.start if self.start <= self.acknowledged else 0)

    def kept(self, found: bytes, *, zeros_may_follow: bool = False) -> list[Appended]:
        """Return the batches that the log holds.

        Args:
            found: the bytes of all segments.
            zeros_may_follow: whether the last segment is open, and may be preallocated.

        Raises:
            BrokenPromiseError: required batches are missing, or others are there.
        """
        appended = self._as_replaced(found)
        first, size = self._first(appended, found), 0
        last = first
        while last < len(appended) and size < len(found):
            batch = appended[last]
            if found[size : size + len(batch.data)] != batch.data:
                msg = f"at offset {batch.start} is something else than what was appended"
                raise BrokenPromiseError(msg)
            size, last = size + len(batch.data), last + 1
        if size != len(found) and not (zeros_may_follow and not any(found[size:])):
            msg = f"{len(found) - size} bytes more than what was appended"
            raise BrokenPromiseError(msg)
        self._check_rest(appended[last:])
        return appended[first:last]

    def _as_replaced(self, found: bytes) -> list[Appended]:
        """Return the batches, with each group of segments old or replaced, as found in the log."""
        appended = list(self.appended)
        for group in self.groups:
            inside = [each for each in appended if group.holds(each)]
            if inside and _joined(inside) not in found:
                first, left = appended.index(inside[0]), group.left(inside)
                stays = left if left and _joined(left) in found else []
                appended[first : first + len(inside)] = [*group.batches, *stays]
        return appended

    def _first(self, appended: list[Appended], found: bytes) -> int:
        """Return the number of the first batch in the log."""
        gone = sum(batch.end <= self.start for batch in appended)
        if not any(found):
            return gone
        return next((number for number in range(gone) if found.startswith(appended[number].data)), gone)

    def _check_rest(self, missing: list[Appended]) -> None:
        """Check that the missing batches after the last one were not acknowledged."""
        if missing and missing[0].start < self.acknowledged:
            msg = (
                f"the batch at offset {missing[0].start} is missing, "
                f"but everything below {self.acknowledged} was acknowledged"
            )
            raise BrokenPromiseError(msg)

    def keeps_more(self, kept: list[Appended]) -> bool:
        """Return whether the log holds more batches than were acknowledged."""
        return bool(kept) and kept[-1].end > self.acknowledged


def _joined(batches: list[Appended]) -> bytes:
    return b"".join(batch.data for batch in batches)


class BrokenPromiseError(Exception):
    """A log breaks its promise."""

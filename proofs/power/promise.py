"""What a log is held against: what was appended, and how much of it has to be there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Appended:
    """A batch as it is to stand in the log, its offset, and the one after it."""

    data: bytes
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Compacted:
    """What is to stand in the place of the batches from an offset on, and below another one.

    Attributes:
        start: base offset of the first segment that is replaced.
        end: offset after the last one.
        batches: what is to stand there.
        segments: base offsets of the segments that are replaced.
    """

    start: int
    end: int
    batches: tuple[Appended, ...]
    segments: tuple[int, ...] = ()

    def holds(self, batch: Appended) -> bool:
        """Tell whether a batch is one of those that are replaced."""
        return self.start <= batch.start < self.end

    def left(self, inside: list[Appended]) -> list[Appended]:
        """Which of the batches a power cut may leave behind the new ones.

        Recovery knows a replacement by the offsets in it. Segments that lie behind them, and of which nothing stays,
        are not taken for replaced: they stay until they are compacted again.
        """
        end = self.batches[-1].end if self.batches else self.start
        first = next((base for base in self.segments[1:] if base >= end), self.end)
        return [batch for batch in inside if batch.start >= first]


@dataclass(frozen=True, slots=True)
class Promise:
    """What has to be in a log after a power cut.

    Attributes:
        appended: the log is a run of these; it begins with the first of them, but for what may be gone.
        acknowledged: everything below was said to be on the disk.
        start: batches that end here or below may be gone, the first ones first.
        groups: of segments that are being compacted, each as a whole.
    """

    appended: tuple[Appended, ...] = ()
    acknowledged: int = 0
    start: int = 0
    groups: tuple[Compacted, ...] = ()

    @property
    def given_out(self) -> int:
        """Everything below was given to records that have to be there, or were removed for good.

        The recovery point may be higher: a follower leaves out offsets that its leader did.
        """
        known = max((each.end for each in self.appended if each.start < self.acknowledged), default=0)
        return max(known, self.start if self.start <= self.acknowledged else 0)

    def kept(self, found: bytes, *, zeros_may_follow: bool = False) -> list[Appended]:
        """Which of the batches are there.

        Args:
            found: the bytes of all segments.
            zeros_may_follow: the last one is open, and may be preallocated.

        Raises:
            BrokenPromiseError: something else is there, or something is not.
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
        """Return the batches, each group of segments as it was or as it is to be; the log tells which."""
        appended = list(self.appended)
        for group in self.groups:
            inside = [each for each in appended if group.holds(each)]
            if inside and _joined(inside) not in found:
                first, left = appended.index(inside[0]), group.left(inside)
                stays = left if left and _joined(left) in found else []
                appended[first : first + len(inside)] = [*group.batches, *stays]
        return appended

    def _first(self, appended: list[Appended], found: bytes) -> int:
        """Return number of the batch that the log begins with."""
        gone = sum(batch.end <= self.start for batch in appended)
        if not any(found):
            return gone
        return next((number for number in range(gone) if found.startswith(appended[number].data)), gone)

    def _check_rest(self, missing: list[Appended]) -> None:
        """Check that what is missing behind the last batch was not acknowledged."""
        if missing and missing[0].start < self.acknowledged:
            msg = (
                f"the batch at offset {missing[0].start} is missing, "
                f"but everything below {self.acknowledged} was acknowledged"
            )
            raise BrokenPromiseError(msg)

    def keeps_more(self, kept: list[Appended]) -> bool:
        """Tell whether the batches that are there are more than what was acknowledged."""
        return bool(kept) and kept[-1].end > self.acknowledged


def _joined(batches: list[Appended]) -> bytes:
    return b"".join(batch.data for batch in batches)


class BrokenPromiseError(Exception):
    """A log is not what it has to be."""

"""Strategies of hypothesis for logs of several segments, and for any index files beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from helpers.made_logs import (
    ABORT,
    COMMIT,
    Entry,
    MadeLog,
    data_batch,
    empty_control_batch,
    marker,
    offset_index,
    plain_message,
    time_index,
    wrapped_messages,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMES = st.integers(0, 30)
PRODUCERS = st.integers(1, 3)
KINDS = (
    "plain",
    "plain",
    "transactional",
    "transactional",
    "marker",
    "thinned",
    "empty",
    "message",
    "wrapper",
    "trace",
)
TAILS = (b"", bytes(5), bytes(40), b"\1" * 17, data_batch(10**6, [1]).data[:-1])


@st.composite
def entries_at(draw: st.DrawFn, base: int) -> Entry:  # noqa: PLR0911 - one for each kind
    kind = draw(st.sampled_from(KINDS))
    times = draw(st.lists(TIMES, min_size=1, max_size=4))
    if kind == "transactional":
        return data_batch(base, times, producer=draw(PRODUCERS), epoch=draw(st.integers(0, 2)))
    if kind == "marker":
        return marker(base, draw(PRODUCERS), draw(st.sampled_from((ABORT, COMMIT))), draw(TIMES))
    if kind == "thinned":
        deltas = sorted(draw(st.sets(st.integers(0, 6), min_size=len(times), max_size=len(times))))
        return data_batch(base, times, deltas=deltas, last_delta=7)
    if kind == "empty":
        return data_batch(base, [], last_delta=draw(st.integers(0, 3)))
    if kind == "message":
        return plain_message(base, times[0], draw(st.integers(0, 1)))
    if kind == "wrapper" and base > 0:
        return wrapped_messages(base, times)
    if kind == "trace":
        return empty_control_batch(base, draw(PRODUCERS))
    return data_batch(base, times)


@st.composite
def made_logs(draw: st.DrawFn) -> MadeLog:
    offset = draw(st.integers(0, 3))
    segments: dict[int, Sequence[Entry]] = {}
    tails = {}
    for _ in range(draw(st.integers(1, 4))):
        base, entries = offset, []
        for _ in range(draw(st.integers(0, 5))):
            entries.append(draw(entries_at(offset + draw(st.sampled_from((0, 0, 0, 2))))))
            offset = entries[-1].batch.last_offset + 1
        segments[base] = entries
        tails[base] = draw(st.sampled_from(TAILS))
        offset = max(offset, base + 1) + draw(st.sampled_from((0, 0, 3)))
    return MadeLog(segments, tails)


@st.composite
def index_files(draw: st.DrawFn, made: MadeLog) -> dict[str, bytes]:
    """Offsets, positions and timestamps that look likely, in slots of either kind, or any bytes at all."""
    numbers = st.integers(0, 200)
    offsets = st.lists(st.tuples(numbers, st.integers(-5, 900)), max_size=5).map(lambda found: offset_index(*found))
    times = st.lists(st.tuples(TIMES, numbers), max_size=5).map(lambda found: time_index(*found))
    files = {}
    for base in made.segments:
        for suffix, likely in ((".index", offsets), (".timeindex", times), (".txnindex", st.just(b"\0" * 34))):
            content = draw(st.none() | likely | st.binary(max_size=70))
            if content is not None:
                files[f"{base:020}{suffix}"] = content
    return files

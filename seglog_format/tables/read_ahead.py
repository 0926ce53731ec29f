"""An iterator that another thread is one step ahead of: reading goes on while what was read is written."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import copy_context
from queue import Empty, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")
Step: TypeAlias = "tuple[T | None, BaseException | None]"

POLL_SECONDS: Final = 0.01
"""Time between looks whether the reading thread, which is no longer needed, has something to hand over."""


@contextmanager
def read_ahead(items: Iterable[T]) -> Iterator[Iterator[T]]:
    """Iterate over items that another thread produces, at most one of which waits.

    Args:
        items: used by the other thread only.

    Yields:
        The same items; an error of theirs is raised in its place. At the end of the block the thread has ended.
    """
    queue: Queue[Step[T]] = Queue(maxsize=1)
    stopped = Event()
    thread = Thread(target=copy_context().run, args=(_produce, items, queue, stopped), name="seglog-read", daemon=True)
    thread.start()
    try:
        yield _consume(queue)
    finally:
        stopped.set()
        while thread.is_alive():
            _drain(queue)
            thread.join(POLL_SECONDS)


def _produce(items: Iterable[T], queue: Queue[Step[T]], stopped: Event) -> None:
    error: BaseException | None = None
    try:
        for item in items:
            queue.put((item, None))
            if stopped.is_set():
                break
    except BaseException as raised:  # noqa: BLE001 - it is raised where the items are used
        error = raised
    queue.put((None, error or StopIteration()))


def _consume(queue: Queue[Step[T]]) -> Iterator[T]:
    while True:
        item, error = queue.get()
        if isinstance(error, StopIteration):
            return
        if error is not None:
            raise error
        assert item is not None
        yield item


def _drain(queue: Queue[Step[T]]) -> None:
    try:
        while True:
            queue.get_nowait()
    except Empty:
        return

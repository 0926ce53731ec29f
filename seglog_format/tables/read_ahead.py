"""An iterator whose items another thread produces one step ahead: reading continues during writing."""

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
"""Time between attempts to take an item from the reading thread, so it ends when it is no longer needed."""


@contextmanager
def read_ahead(items: Iterable[T]) -> Iterator[Iterator[T]]:
    """Iterate over items that another thread produces; at most one item waits in between.

    Args:
        items: only the other thread iterates over them.

    Yields:
        An iterator over the same items, which also raises their errors. At the end of the block the thread has ended.
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

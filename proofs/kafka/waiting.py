"""Waiting for asynchronous work of brokers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from proofs.kafka.oracle import OracleError

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT_SECONDS: Final = 60


def wait_for(what: str, is_so: Callable[[], object], seconds: float = WAIT_SECONDS) -> None:
    """Wait until a condition holds.

    Args:
        what: the condition, in words, for the error.
        is_so: returns whether it holds.
        seconds: how long to wait.

    Raises:
        OracleError: the condition does not hold in that time.
    """
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            msg = f"not reached in {seconds} s: {what}"
            raise OracleError(msg)
        time.sleep(0.2)

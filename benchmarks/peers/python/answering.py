"""The line protocol of a Python peer: one JSON object per line, for the works and the seconds of each pass."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from contents import Part

    Preparing = Callable[["Request"], Callable[[], Any]]
    """Returns the function to time, whose result is passed to the work's check."""


Request = dict[str, Any]


class NotBuiltError(Exception):
    """This work is not implemented yet."""


class Work:
    """A work to time.

    Args:
        prepare: returns the function to time.
        check: returns the parts of the contents, on request; it may read everything again.
    """

    def __init__(self, prepare: Preparing, check: Callable[[Request, Any], Iterable[Part]]) -> None:
        self.prepare, self.check = prepare, check

    def answer(self, request: Request) -> dict[str, Any]:
        """Run the passes, and return the answer."""
        run, seconds, found = self.prepare(request), [], None
        gc.collect()
        for _ in range(request.get("passes", 1)):
            found = None
            start = time.perf_counter()
            found = run()
            seconds.append((time.perf_counter() - start) / len(request.get("offsets", "1")))
        parts = self.check(request, found) if request.get("check") else ()
        return {"seconds": seconds, "parts": [[str(part.number), part.count] for part in parts]}


def serve(version: str, works: dict[str, Work], asked: dict[str, Callable[[Request], dict[str, Any]]]) -> None:
    """Answer requests until the input ends.

    Args:
        version: version of the measured library.
        works: works by name.
        asked: functions for other requests, by name.
    """
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the output of libraries goes to standard error
    gc.freeze()  # what the imports made costs no collection before a turn
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line), version, works, asked)), file=output, flush=True)


def _answer(
    request: Request, version: str, works: dict[str, Work], asked: dict[str, Callable[[Request], dict[str, Any]]]
) -> dict[str, Any]:
    name = request["work"]
    try:
        if name == "hello":
            return {"version": version}
        if name in asked:
            return asked[name](request)
        if name not in works:
            return {"skip": "not built"}
        return works[name].answer(request)
    except NotBuiltError as error:
        return {"skip": str(error)}
    except Exception as error:  # noqa: BLE001 - the benchmark tells it
        return {"error": f"{type(error).__name__}: {error}"}

"""The adapter's end of the protocol, for adapters in Python that live in this package.

Others copy a template: an adapter depends on nothing but its library.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Protocol

from seglog_conformance.protocol import request_line

if TYPE_CHECKING:
    from seglog_conformance.protocol import Json


class Answering(Protocol):
    """Something in this process that answers requests."""

    def hello(self) -> Json:
        """Return what it says of itself, without ``seq``."""

    def answer(self, request: Json) -> Json:
        """Return the answer to one request, without ``seq``."""


def serve(answering: Answering) -> None:
    """Answer requests from standard input until there are none, or ``stop``.

    Whatever else in this process prints goes to standard error.
    """
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if request["op"] == "stop":
            return
        answer = answering.hello() if request["op"] == "hello" else answering.answer(request)
        out.write(request_line({"seq": request["seq"], **answer}))

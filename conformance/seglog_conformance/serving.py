"""The adapter's side of the protocol, for Python adapters in this package.

Other adapters copy a template: they depend only on their library.
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
    """An object in this process that answers requests."""

    def hello(self) -> Json:
        """Return the description of the implementation, without ``seq``."""

    def answer(self, request: Json) -> Json:
        """Return the answer to one request, without ``seq``."""


def serve(answering: Answering) -> None:
    """Answer requests from standard input until it ends, or until ``stop``.

    Any other output of this process goes to standard error.
    """
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if request["op"] == "stop":
            return
        answer = answering.hello() if request["op"] == "hello" else answering.answer(request)
        out.write(request_line({"seq": request["seq"], **answer}))

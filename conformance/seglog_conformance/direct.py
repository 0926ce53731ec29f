"""Testees in this process: fast, with no other protection than that an exception counts as a crash."""

from __future__ import annotations

import time
import traceback
from typing import TYPE_CHECKING

from seglog_conformance.protocol import ProtocolError, check_form, check_strictly, hello_of
from seglog_conformance.testee import Kind, Reply

if TYPE_CHECKING:
    from seglog_conformance.protocol import Hello, Json
    from seglog_conformance.serving import Answering
    from seglog_conformance.testee import Allowance


class DirectTestee:
    """A Python object that answers requests in this process.

    Args:
        name: name in the registry.
        answering: object that answers.
        strict: whether to validate requests and answers against their schemas.
    """

    def __init__(self, name: str, answering: Answering, *, strict: bool = False) -> None:
        self._name = name
        self._answering = answering
        self._strict = strict

    @property
    def name(self) -> str:
        """Return the name in the registry."""
        return self._name

    def start(self) -> Hello:
        """Start the testee, and return its description."""
        return hello_of(self._answering.hello())

    def ask(self, request: Json, allowance: Allowance) -> Reply:  # noqa: ARG002 - nothing can be held back here
        """Send a request once."""
        start = time.perf_counter()
        try:
            answer = self._answering.answer(request)
            self._check(request, answer)
        except ProtocolError as error:
            return Reply(Kind.BROKEN, detail=str(error), seconds=time.perf_counter() - start)
        except Exception as error:  # noqa: BLE001 - whatever it is, it got out
            return Reply(
                Kind.CRASH, detail=repr(error), stderr=traceback.format_exc(), seconds=time.perf_counter() - start
            )
        return Reply(Kind.ANSWER, answer, seconds=time.perf_counter() - start)

    def _check(self, request: Json, answer: Json) -> None:
        check_form(answer)
        if self._strict:
            check_strictly(request, f"request-{request['op']}")
            check_strictly({"seq": request["seq"], **answer}, f"answer-{request['op']}")

    def close(self) -> None:
        """Do nothing: there is no process to end."""

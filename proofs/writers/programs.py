"""The programs around the libraries: those of the conformance suite, asked to encode or to send."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.process import ProcessTestee
from seglog_conformance.registry import BUILDS, Builder, listed
from seglog_conformance.testee import Allowance, Kind, StartError

from proofs.kafka.oracle import REPOSITORY
from proofs.writers.cells import Way

if TYPE_CHECKING:
    from seglog_conformance.process import Command

    from proofs.writers.cells import Writer

ALLOWANCE: Final = Allowance(seconds=60.0)
WIRE: Final = "seglog_conformance.wire"
"""The module that stands between the suite and a whole client; here the client is told a real address."""


class NotWrittenError(Exception):
    """A writer cannot be asked, or did not write the requested records."""


class Program(AbstractContextManager["Program"]):
    """The program around a library, built when it is first used; a context manager.

    Args:
        writer: the writer.

    Attributes:
        version: version of the library.
        language: language of the library.
        codecs: codecs of the library.

    Raises:
        AdapterError: a tool chain is missing, or it does not build.
        NotWrittenError: it does not start.
    """

    def __init__(self, writer: Writer) -> None:
        wanted = listed(writer.adapter)
        assert wanted.adapter is not None
        builder = Builder(REPOSITORY / BUILDS)
        builder.testee(wanted)
        command = builder.command(wanted.adapter, wanted.version)
        self._testee = ProcessTestee(writer.title, _direct(command) if writer.way is Way.CLIENT else command)
        try:
            hello = self._testee.start()
        except StartError as error:
            raise NotWrittenError(str(error)) from error
        self.version = hello.implementation.version
        self.language = hello.implementation.language
        self.codecs: tuple[str, ...] = tuple(hello.features["codec"])
        self._number = 0

    def encode(self, batch: dict[str, Any], **fields: object) -> bytes:
        """Encode or send a batch; return its bytes if they were not sent.

        Raises:
            NotWrittenError: it was refused, with the reason.
        """
        self._number += 1
        reply = self._testee.ask({"seq": self._number, "op": "encode", "batches": [batch], **fields}, ALLOWANCE)
        if reply.kind is not Kind.ANSWER or reply.answer is None:
            self._testee.start()
            raise NotWrittenError(reply.detail or reply.kind.value)
        if not reply.answer.get("ok"):
            raise NotWrittenError(_reason(reply.answer))
        return bytes.fromhex(reply.answer.get("data", ""))

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the program."""
        self._testee.close()


def _direct(command: Command) -> Command:
    """Return the command of a client without the module of the suite before it."""
    arguments = command.arguments
    return replace(command, arguments=arguments[arguments.index(WIRE) + 1 :] if WIRE in arguments else arguments)


def _reason(answer: dict[str, Any]) -> str:
    skip, reject = answer.get("skip", {}), answer.get("reject", {})
    error = answer.get("error", {})
    found = skip.get("reason") or skip.get("feature") or reject.get("message") or error.get("message")
    return " ".join(str(found).split())[:200]

"""A Kafka endpoint over log directories: wire protocol, catalogue of topics, and threads.

The path of a request is that of a broker: an acceptor hands connections to processors in turn, processors read requests
and put them into one bounded queue, I/O threads take them out and answer, and the answer goes back to the processor of
its connection, which sends it. Log bytes are sent from the file to the socket as they are stored.
"""

import sys
from types import ModuleType
from typing import Final

FOR_ANNOTATIONS: Final = {"asyncio": "StreamWriter", "typing_extensions": "Buffer"}
"""Modules that `kio` imports only to name a class in an annotation."""

FOR_TESTS: Final = "hypothesis"
"""Modules that `kio` imports if they are installed, and can do without."""


def _load_protocol() -> None:
    """Import `kio` without the modules named above, which would take most of the start-up time."""
    stand_ins: dict[str, ModuleType | None] = {FOR_TESTS: None}
    for name, annotation in FOR_ANNOTATIONS.items():
        stand_in = stand_ins[name] = ModuleType(name)
        setattr(stand_in, annotation, type(annotation, (), {}))
    missing = {name: module for name, module in stand_ins.items() if name not in sys.modules}
    sys.modules.update(missing)  # type: ignore[arg-type]  # None is the documented way to make an import fail
    try:
        import kio.serial  # noqa: F401, PLC0415 - so later imports find it
    finally:
        for name in missing:
            del sys.modules[name]


_load_protocol()

"""A Kafka endpoint over log directories: the wire protocol, the catalogue, and the threads between them.

The path of a request is that of a broker: an acceptor hands connections to processors in turn, processors read
requests and put them into one bounded queue, I/O threads take them out and answer, and the answer goes back to the
processor of its connection, which sends it. Log bytes go from the file to the socket as they are stored.
"""

import sys

if "hypothesis" not in sys.modules:
    # The library of the protocol imports it wherever it is installed, which takes longer than all the rest of a start.
    sys.modules["hypothesis"] = None  # type: ignore[assignment]  # the documented way to make an import fail
    try:
        import kio.static.primitive  # noqa: F401 - so that later imports find it
    finally:
        del sys.modules["hypothesis"]

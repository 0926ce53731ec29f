"""A read-only Kafka endpoint over log directories: the wire protocol, the catalogue, and the threads between them.

The path of a request is that of a broker: an acceptor hands connections to processors in turn, processors read
requests and put them into one bounded queue, I/O threads take them out and answer, and the answer goes back to the
processor of its connection, which sends it. Log bytes go from the file to the socket as they are stored.
"""

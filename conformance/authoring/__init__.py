"""The cases of the conformance suite, put together byte by byte.

Nothing here imports the package that the suite judges: bytes are laid out with `struct`, checksums come from zlib and
crcmod, compressed data from the codecs' own libraries. The expected answer of a case is written from the same few
values as its bytes, not read back from them.
"""

"""Fetch responses of ``seglog serve`` as Wireshark's dissector reads them, beside our own reading."""

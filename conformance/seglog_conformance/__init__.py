"""The conformance suite, which judges any implementation, in any language, of Kafka's segmented log format.

An implementation joins through an adapter, a program that answers JSON lines. A case holds a request and the expected
answer; the runner sends the request, survives any failure, and gives a verdict that names the case, the requirements
and the bytes. ``seglog conform`` is the command line.
"""

from __future__ import annotations

"""The conformance suite: judges any implementation, in any language, of Kafka's segmented log format.

An implementation joins through an adapter, a program that answers JSON lines. Cases say what to ask and what the answer
has to be; the runner asks, survives whatever happens, and gives a verdict that names the case, the requirements and the
bytes. ``seglog conform`` is the command line.
"""

from __future__ import annotations

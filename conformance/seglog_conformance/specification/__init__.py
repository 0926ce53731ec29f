"""The algorithms of the specification as a testee of the suite: ``seglog conform run --testee spec``.

These modules convert requests and answers; `seglog_algorithms` makes every decision.
"""

from __future__ import annotations

from seglog_conformance.specification.testee import Specification

__all__ = ["Specification"]

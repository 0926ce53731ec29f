"""The reference implementation as an adapter: ``python -m seglog_conformance.reference``."""

from __future__ import annotations

from seglog_conformance.reference.leading import leading_batches
from seglog_conformance.reference.logs import decode, sound_batches
from seglog_conformance.reference.testee import Reference

__all__ = ["Reference", "decode", "leading_batches", "sound_batches"]

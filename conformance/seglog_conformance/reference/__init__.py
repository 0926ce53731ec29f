"""The reference implementation behind the protocol: ``python -m seglog_conformance.reference`` is an adapter."""

from __future__ import annotations

from seglog_conformance.reference.leading import leading_batches
from seglog_conformance.reference.logs import decode, sound_batches
from seglog_conformance.reference.testee import Reference

__all__ = ["Reference", "decode", "leading_batches", "sound_batches"]

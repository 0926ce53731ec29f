"""A short run of the proof of what reading a compressed and encrypted tier costs; what it says of time is left out."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from proofs import tier_rate


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tier_rate, "CHUNK_SIZE", 2**18)
        patch.setattr(tier_rate, "SEGMENT_SIZE", 2**21)
        return dict(tier_rate.prove(Namespace(megabytes=6, rounds=1, seed=3)).facts)


def test_reading_a_tier_whole_fetches_each_chunk_and_manifest_once_and_the_leader_epochs(facts: dict[str, Any]) -> None:
    (only,) = facts["rounds"]
    assert only["read"]["requests"] == facts["chunks"] + facts["segments"] + 1
    assert 0 < only["read"]["fetched_bytes"] - facts["stored_bytes"] < 4096 * facts["segments"]


def test_a_lookup_fetches_far_less(facts: dict[str, Any]) -> None:
    assert facts["lookup"]["bytes"] < facts["stored_bytes"] / 4

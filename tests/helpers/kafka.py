"""Stock brokers, where they can be had."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from proofs.kafka.oracle import TOOL_CHAIN, OracleError
from tests.helpers.support import need

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def kafka_at_hand() -> Iterator[None]:
    """Skip the test where Kafka cannot be built or started; fail in CI."""
    need("a broker", TOOL_CHAIN)
    try:
        yield
    except OracleError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"Kafka could not be built or started: {error}")

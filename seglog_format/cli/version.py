"""The version, repeated from `pyproject.toml` because reading the package's metadata is slow."""

from typing import Final

VERSION: Final = "0.1.0"

"""The version, also stated in `pyproject.toml`; asking the package's metadata would take longer than all the rest."""

from typing import Final

VERSION: Final = "0.1.0"

"""The project's home on the site: address, repository, feedback and versions, all from one file of settings."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

SETTINGS = tomllib.loads((Path(__file__).parent / "site.toml").read_text(encoding="utf-8"))


def show(config: MkDocsConfig) -> None:
    """Set the links of the site to the project's home, if there is one."""
    if SETTINGS["address"]:
        config.site_url = SETTINGS["address"]
    if SETTINGS["repository"]:
        config.repo_url = SETTINGS["repository"]
        config.edit_uri = SETTINGS["edit"] or None
    links = [("report an error", SETTINGS["feedback"]), *SETTINGS["versions"].items()]
    shown = [f'<a href="{address}">{name}</a>' for name, address in links if address]
    config.copyright = " · ".join([config.copyright or "", *shown])

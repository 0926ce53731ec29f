"""Links between the pages about one structure, and the reference's pictures in the chapters."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
PICTURE: Final = re.compile(r"^\[!\[(Bytes of \w+)\]\((\.\./assets/[\w-]+\.svg)\)\]\(\2\)$", re.MULTILINE)
HEADING: Final = re.compile(r"\A((?:<!--.*?-->\s*|---\n.*?\n---\n\s*)*# [^\n]+\n)", re.DOTALL)
STATES: Final = {
    "spec/10-partition-directory.md": ("swap-states", "Names that the files of a replacement go through"),
    "spec/71-flush-and-recovery.md": ("recovery-states", "What a start does to a log"),
}


@cache
def chapters() -> dict[str, str]:
    """Return the chapter of each structure that has a page in the reference, both by their file names."""
    stems = {path.stem: path.stem.partition("-")[2] for path in sorted((REPOSITORY / "spec").glob("*.md"))}
    written = {path.stem for path in (REPOSITORY / "docs" / "reference").glob("*.md")}
    return {structure: chapter for chapter, structure in stems.items() if structure in written}


def with_siblings(markdown: str, source: str) -> str:
    """Return a page with a line of links to the others about its structure, and with pictures if it is a chapter.

    Args:
        markdown: text of the page.
        source: its path below the documents.
    """
    folder, _, name = source.partition("/")
    stem = name.removesuffix(".md")
    lines: list[str] = []
    if folder == "reference" and stem in chapters():
        chapter = chapters()[stem]
        lines = [f"*Layout, bytes and examples. The binding rules are in [the specification](../spec/{chapter}.md).*"]
    elif folder == "spec" and (structure := stem.partition("-")[2]) in chapters():
        code = f"[code and tests](../reference/requirements/{stem}.md)"
        links = f"[layouts with every field](../reference/{structure}.md), {code}"
        lines = [f"*The binding rules. Beside them: {links}, [which page to read](../reference/index.md).*"]
        lines += pictures(structure)
    if source in STATES:
        picture, text = STATES[source]
        lines.append(f"![{text}](../assets/{picture}.svg)")
    return (
        HEADING.sub(lambda found: found[1] + "\n" + "\n\n".join(lines) + "\n", markdown, count=1) if lines else markdown
    )


@cache
def pictures(structure: str) -> tuple[str, ...]:
    """Return the pictures of a structure's page in the reference, as Markdown for a chapter."""
    page = (REPOSITORY / "docs" / "reference" / f"{structure}.md").read_text(encoding="utf-8")
    return tuple(f"[![{text}]({target})](../reference/{structure}.md)" for text, target in PICTURE.findall(page))

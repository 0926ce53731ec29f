"""Pages with Python that runs in Spark: each block is run, and its output is the block of text that follows.

``python -m tools.docs.spark_pages`` writes the outputs again; the tests run the blocks as well.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tools import demo_data

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY: Final = Path(__file__).resolve().parents[2]
TUTORIAL: Final = REPOSITORY / "docs" / "tutorial" / "from-a-broker-to-a-chart.md"
CHART: Final = REPOSITORY / "docs" / "assets" / "compression-chart.svg"
DRAWN: Final = "try/compression-chart.svg"
"""Path of the picture in the directory in which the tutorial runs."""
BLOCK: Final = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<text>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)


def refreshed(markdown: str, run: Callable[[Callable[[], None]], None] = lambda block: block()) -> str:
    """Return the page with the outputs of its blocks; the working directory must hold ``demo/``.

    Args:
        markdown: the page.
        run: calls each block, on a busy machine maybe twice.
    """
    scope: dict[str, Any] = {"__name__": "__main__"}

    def block(match: re.Match[str]) -> str:
        code = compile(match["code"], "page", "exec")
        printed = io.StringIO()

        def once() -> None:
            printed.seek(0)
            printed.truncate()
            with contextlib.redirect_stdout(printed):
                exec(code, scope)  # noqa: S102 - a page of ours

        run(once)
        text = "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())
        return f"```python\n{match['code']}```\n" + (f"\n```text\n{text}\n```\n" if text else "")

    return BLOCK.sub(block, markdown)


def main() -> int:
    """Write the tutorial and its picture again."""
    page = TUTORIAL.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as root, contextlib.chdir(root):
        demo_data.unpack(Path("demo"))
        page = refreshed(page)
        CHART.write_bytes(Path(DRAWN).read_bytes())
    TUTORIAL.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

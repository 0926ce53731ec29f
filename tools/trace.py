"""``python -m tools.trace``: see `requirement_trace`, whose name differs from the standard library's module."""

from __future__ import annotations

import sys

from tools.requirement_trace import main

if __name__ == "__main__":
    sys.exit(main())

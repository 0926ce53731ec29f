"""``python -m tools.trace``: see `requirement_trace`, which has a name that the standard library does not use."""

from __future__ import annotations

import sys

from tools.requirement_trace import main

if __name__ == "__main__":
    sys.exit(main())

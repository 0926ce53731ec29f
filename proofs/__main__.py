"""``python -m proofs NAME``."""

import sys

from proofs.harness import main

sys.exit(main())

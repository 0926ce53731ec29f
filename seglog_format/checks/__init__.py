"""The checks of the requirements, one small function each; `verify` runs them over any path."""

from seglog_format.checks.finding import Finding, Problem
from seglog_format.checks.verify import verify, verify_log

__all__ = ["Finding", "Problem", "verify", "verify_log"]

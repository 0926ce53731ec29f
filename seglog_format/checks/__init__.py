"""One small function per requirement, yielding findings; `verify` runs them over whatever a path names."""

from seglog_format.checks.finding import Finding, Problem
from seglog_format.checks.verify import verify, verify_log

__all__ = ["Finding", "Problem", "verify", "verify_log"]

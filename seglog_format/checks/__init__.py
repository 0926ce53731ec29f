"""One small function per requirement, yielding findings."""

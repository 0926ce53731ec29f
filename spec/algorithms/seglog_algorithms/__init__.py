"""The algorithms of the specification as short pure functions, one module for each chapter or part of one.

Read each beside its chapter; `spec/algorithms/README.md` has the conventions. Clear, not fast: use `seglog_format` for
work.
"""

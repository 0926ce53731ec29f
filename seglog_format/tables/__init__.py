"""Logs as tables: files of columns, which are added to exactly once and say themselves how far they reach."""

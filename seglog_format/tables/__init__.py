"""Logs as tables: files of columns, to which each record is added exactly once, and which store their progress."""

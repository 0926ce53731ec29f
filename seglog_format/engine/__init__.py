"""The choice of the engine that reads a log, and the interface to compiled code.

Besides this package only three modules of `seglog_format.spark`, which always needs the engine, import
`seglog_format.columnar`; an import contract lists them.
"""

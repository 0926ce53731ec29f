"""Which engine reads a log, and the only door to compiled code: nothing else imports `seglog_format.columnar`."""

"""The commands of the suite, ``seglog conform`` and ``seglog fixtures``, which `seglog_format.cli` calls by name."""

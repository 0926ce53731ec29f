"""Found by Spark, which looks for data sources in top-level modules named so: ``spark.read.format("seglog")``.

Every Spark program on a machine with this package imports this. So it costs little, and never fails.
"""

from contextlib import suppress

with suppress(ImportError):
    from seglog_format.spark.source import SeglogDataSource as DefaultSource

__all__ = ["DefaultSource"]

"""The program of `test_spark_archive.py`: queries by executors whose Python has nothing but an unpacked archive."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from proofs.spark.session import QUIET
from seglog_format.spark import session


def imported(_: int) -> list[str]:
    """Return where an executor has the package, Arrow and the compiled kernels from."""
    import pyarrow as pa

    import seglog_format
    from seglog_format.columnar import kernel_library

    library = kernel_library.library()
    kernels = kernel_library.DIRECTORY / library.level if library else "no compiled kernels"
    return [str(each) for each in (seglog_format.__file__, pa.__file__, kernels)]


def main() -> None:
    """Run the queries that a file lists, each a path with its options; write the offsets that they give."""
    master, archive, asked, result = sys.argv[1:]
    local = str(Path(result).with_name("spark"))
    settings = {
        **QUIET,
        "spark.archives": f"{archive}#packages",
        "spark.executorEnv.PYTHONPATH": "packages",
        "spark.local.dir": local,
        "spark.sql.warehouse.dir": local,
    }
    spark = session("archive", master=master, settings=settings)
    found = {"imported": spark.sparkContext.parallelize(range(2), 2).flatMap(imported).distinct().collect()}
    for name, path, options in json.loads(Path(asked).read_text(encoding="utf-8")):
        rows = spark.read.format("seglog").options(**options).load(path).select("offset")
        found[name] = sorted(row.offset for row in rows.collect())
    Path(result).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()

"""A Structured Streaming query into a Hudi table, until its file `stop` appears. Run by Hudi's own environment.

    python streaming_writer.py BUNDLE.jar FOLDER PER_SECOND SECONDS_BETWEEN_COMMITS key=value…

FOLDER gets `table`, `checkpoint` and, when the writer has ended by itself, `ended`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))


def main(bundle: str, folder: Path, per_second: int, seconds: str, options: dict[str, str]) -> None:
    from scripts.hudi_server import start_spark
    from tests.live.events import SQL

    spark = start_spark(bundle)
    # What a batch held is read from its offsets, which Spark deletes after a hundred batches otherwise.
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "1000000")
    source = spark.readStream.format("rate").option("rowsPerSecond", per_second).option("numPartitions", 1).load()
    source = source.selectExpr("value", "unix_millis(timestamp) as at")
    events = source.selectExpr(*(f"{expression} as `{name}`" for name, expression in SQL.items()))
    query = (
        events.writeStream.format("hudi")
        .options(**options)
        .outputMode("append")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime=f"{seconds} seconds")
        .start(str(folder / "table"))
    )
    while query.isActive and not (folder / "stop").exists():
        time.sleep(0.2)
    error = query.exception()
    query.stop()
    (folder / "ending").write_text(str(error or ""))
    (folder / "ending").rename(folder / "ended")  # whole at once: whoever waits for it reads it then
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4], dict(one.split("=", 1) for one in sys.argv[5:]))

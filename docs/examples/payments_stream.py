"""A Structured Streaming writer of an Apache Hudi 1.2 table: payments, some of which come late.

    python payments_stream.py hudi-spark3.5-bundle_2.12-1.2.0.jar /tmp/payments

Needs PySpark 3.5 and Java 17. Ctrl-C ends it.
"""

import sys

from pyspark.sql import SparkSession

bundle, path = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars", bundle)
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
payments = (
    spark.readStream.format("rate")
    .option("rowsPerSecond", 20)
    .load()
    .selectExpr(
        "concat('p', value % 500) as id",
        # One payment in fifty is reported twenty seconds late.
        "timestamp - make_interval(0, 0, 0, 0, 0, 0, if(value % 50 = 7, 20, 0)) as paid_at",
        "cast(value % 10000 / 100 as decimal(10, 2)) as amount",
    )
)
hudi = {
    "hoodie.table.name": "payments",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.table.ordering.fields": "paid_at",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    # Compaction is the event-time platform's from now on.
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.compact.inline": "false",
    # What a query may still read: more commits than the longest query takes.
    "hoodie.cleaner.commits.retained": "60",
    "hoodie.keep.min.commits": "65",
    "hoodie.keep.max.commits": "75",
}
query = (
    payments.writeStream.format("hudi")
    .options(**hudi)
    .outputMode("append")
    .option("checkpointLocation", f"{path}_checkpoint")
    .trigger(processingTime="5 seconds")
    .start(path)
)
query.awaitTermination()

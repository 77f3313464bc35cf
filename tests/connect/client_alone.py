"""A program for PySpark's client alone, at a machine without Java: makes a table, compacts it, prints both views.

python client_alone.py URL PATH
"""

import json
import sys

from pyspark.util import is_remote_only

from hudi_assets.engine import HudiTable, connected_session

url, path = sys.argv[1:]
assert is_remote_only()
spark = connected_session(url)
first = spark.sql("SELECT 'a' AS id, timestamp'2024-05-01 08:00:00' AS paid_at")
later = spark.sql("SELECT 'b' AS id, timestamp'2024-05-01 11:00:00' AS paid_at")
table = HudiTable.create(path, first.schema, record_key=["id"], ordering_field="paid_at", buckets=1)
table.upsert(spark, first)
table.upsert(spark, later)
table.compact(spark, threshold="2024-05-01T09:00:00Z")
views = table.read_optimized(spark), table.snapshot(spark)
print(json.dumps([sorted(row["id"] for row in view.collect()) for view in views]))
spark.stop()

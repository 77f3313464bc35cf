"""What `metastore` writes into files: settings of Hive and Spark, and statements of SQL."""

from __future__ import annotations

from typing import Final

HIVE_SITE: Final = """<?xml version="1.0"?>
<configuration>
  <property><name>javax.jdo.option.ConnectionURL</name>
    <value>jdbc:derby:;databaseName={database};create=true</value></property>
  <property><name>hive.metastore.warehouse.dir</name><value>{warehouse}</value></property>
  <property><name>datanucleus.schema.autoCreateAll</name><value>true</value></property>
  <property><name>hive.metastore.schema.verification</name><value>false</value></property>
  <property><name>hive.async.log.enabled</name><value>false</value></property>
</configuration>
"""

# Hive's Derby schema cuts a view's text at 32,700 characters, about 250 file names: make it a CLOB.
LONG_VIEW_TEXTS: Final = """ALTER TABLE TBLS ADD COLUMN LONG_TEXT CLOB;
UPDATE TBLS SET LONG_TEXT = VIEW_EXPANDED_TEXT;
ALTER TABLE TBLS DROP COLUMN VIEW_EXPANDED_TEXT RESTRICT;
RENAME COLUMN TBLS.LONG_TEXT TO VIEW_EXPANDED_TEXT;
ALTER TABLE TBLS ADD COLUMN LONG_TEXT CLOB;
UPDATE TBLS SET LONG_TEXT = VIEW_ORIGINAL_TEXT;
ALTER TABLE TBLS DROP COLUMN VIEW_ORIGINAL_TEXT RESTRICT;
RENAME COLUMN TBLS.LONG_TEXT TO VIEW_ORIGINAL_TEXT;
"""

LOG4J: Final = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
logger.shell.name = org.apache.spark.sql.hive.thriftserver.SparkSQLCLIDriver
logger.shell.level = error
logger.sink.name = org.apache.spark.sql.execution.streaming.sinks.FileStreamSink
logger.sink.level = error
"""

# Sourced by Spark's launcher, which then becomes the session's process: `$$` is the session's id.
SPARK_ENV: Final = """PYSPARK_PYTHON="${{PYSPARK_PYTHON:-{python}}}"
PYTHONPATH="{project}${{PYTHONPATH:+:$PYTHONPATH}}"
"{python}" "{script}" acquire --home "{home}" --pid $$ > /dev/null
"""

SPARK_DEFAULTS: Final = """spark.sql.catalogImplementation                        hive
spark.hadoop.hive.metastore.uris                        {uri}
spark.sql.warehouse.dir                                 {warehouse}
spark.sql.session.timeZone                              UTC
spark.ui.enabled                                        false
# The read-optimized view names its files: list them here instead of in a job of their own.
spark.sql.sources.parallelPartitionDiscovery.threshold  100000
"""

"""Tables in buckets as Spark and catalogs see them, without a Spark. tests/stores has a real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_assets.catalog.queries import read_optimized_query
from hudi_assets.catalog.same_table import is_same_folder, is_same_location
from hudi_assets.dagster.report import compaction_metadata
from hudi_assets.demo.replay import table_path
from hudi_assets.engine import CorruptTable, HudiTable
from hudi_assets.engine.spark import session as spark_session
from hudi_assets.engine.spark import stores
from hudi_assets.engine.spark.stores import s3a_settings, spark_name, tell_of_store
from hudi_assets.resources import TableResource
from tests.crash.tables import new_table, planned, write_batches
from tests.stores.folder import FolderBucket
from tests.tables.local_session import LocalSession

MINIO = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000", "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "me"}
PROVIDER = "fs.s3a.aws.credentials.provider"


def test_spark_knows_a_bucket_by_hadoops_name() -> None:
    assert spark_name("s3://lake/t/a.parquet") == spark_name("s3a://lake/t/a.parquet") == "s3a://lake/t/a.parquet"
    assert spark_name("/lake/t/s3://x") == "/lake/t/s3://x"


def test_a_view_names_the_files_of_a_bucket_in_one_path() -> None:
    schema = pa.schema([("id", pa.string())])
    query = read_optimized_query(schema, ["s3a://lake/t/p=b/b.parquet", "s3a://lake/t/p=a/a.parquet"])
    assert query == "SELECT `id` FROM parquet.`s3a://lake/t/{p=a/a.parquet,p=b/b.parquet}`"
    assert "UNION ALL" in read_optimized_query(schema, ["s3a://lake/t/p=1:2/b.parquet", "s3a://lake/t/p=a/a.parquet"])


def test_a_bucket_is_the_same_by_each_of_its_schemes() -> None:
    for said in ("s3://lake/t", "s3a://lake/t", "s3a://lake/t/", "s3n://lake/t"):
        assert is_same_location(said, "s3a://lake/t")
        assert is_same_folder(said, "s3://lake/t")
    for other in ("s3a://lake/t2", "s3a://lake2/t", "/lake/t"):
        assert not is_same_location(other, "s3://lake/t")
        assert is_same_folder(other, "s3://lake/t") is False, "what is in a bucket is there for every machine"
    assert is_same_folder("/lake/elsewhere", "/lake/t") is None


def test_s3a_is_told_what_the_environment_says() -> None:
    told = s3a_settings(MINIO, "3.5.0")
    assert told["fs.s3a.endpoint"] == "http://127.0.0.1:9000"
    assert told["fs.s3a.path.style.access"] == "true"
    assert told["fs.s3a.connection.ssl.enabled"] == "false"
    assert told["fs.s3a.endpoint.region"] == "eu-central-1"
    assert told[PROVIDER].endswith("DefaultCredentialsProvider")
    assert s3a_settings(MINIO, "3.3.4")[PROVIDER].endswith("DefaultAWSCredentialsProviderChain")
    assert "me" not in told.values(), "who we are is looked up by who asks"
    assert s3a_settings({"PATH": "/bin"}, "3.5.0") == {}
    assert s3a_settings({"AWS_SKIP_SIGNATURE": "true"}, "3.5.0")[PROVIDER].endswith("AnonymousAWSCredentialsProvider")


class _Configuration(dict[str, str]):
    """Hadoop's, with what somebody has stated."""

    def set(self, name: str, value: str) -> None:
        self[name] = value

    def getPropertySources(self, name: str) -> list[str] | None:  # noqa: N802
        return ["core-default.xml", "programmatically"] if name in self else ["core-default.xml"]


class _Java:
    """As much of a session as `tell_of_store` and `why_not_by_itself` ask."""

    def __init__(self, configuration: _Configuration) -> None:
        self.sparkContext = self._jsc = self
        self._jvm = self.org = self.apache = self.hadoop = self.util = self.VersionInfo = self
        self._configuration = configuration

    def hadoopConfiguration(self) -> _Configuration:  # noqa: N802
        return self._configuration

    def getVersion(self) -> str:  # noqa: N802
        return "3.5.0"


def test_a_session_that_says_where_its_store_is_keeps_it() -> None:
    for said in ("fs.s3a.endpoint", "fs.s3a.access.key", PROVIDER):
        configuration = _Configuration({said: "theirs"})
        tell_of_store(_Java(configuration), MINIO)
        assert configuration == {said: "theirs"}
    configuration = _Configuration()
    tell_of_store(_Java(configuration), MINIO)
    assert configuration == s3a_settings(MINIO, "3.5.0")


def test_base_files_that_spark_cannot_read_are_read_by_tasks(
    tmp_path: Path, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path / "t", 9)
    write_batches(table, session)
    table.execute_compaction(session, planned(table).instant)
    wanted = table.read_optimized(session).toArrow()

    def refuse(*_: Any) -> None:
        raise AssertionError("Spark's own reader")

    monkeypatch.setattr(spark_session, "parquet_frame", refuse)
    with pytest.raises(AssertionError):
        table.read_optimized(session)
    monkeypatch.setattr(spark_session, "reads_by_itself", lambda *_: False)
    found = table.read_optimized(session).toArrow()
    assert sorted(found["id"].to_pylist()) == sorted(wanted["id"].to_pylist())


def test_what_is_missing_is_said_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(stores, "_missing_package", lambda *_: "spark.jars.packages=org.apache.hadoop:hadoop-aws:3.5.0")
    spark = _Java(_Configuration())
    for _ in range(3):
        assert stores.why_not_by_itself(spark, "s3://lake/t") is not None
    assert [record.message for record in caplog.records if "hadoop-aws:3.5.0" in record.message] == caplog.messages
    assert len(caplog.messages) == 1
    assert stores.why_not_by_itself(spark, "/lake/t") is None


def test_a_new_table_is_one_that_its_store_can_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    more: dict[str, Any] = {"record_key": ["id"], "ordering_field": "ts"}
    assert HudiTable.create(str(tmp_path / "disk"), schema, **more).config.table_version == 6
    opening = "hudi_assets.engine.hudi_table.table.open_storage"
    monkeypatch.setattr(opening, lambda path, *_: FolderBucket(str(path)))
    assert HudiTable.create(str(tmp_path / "bucket"), schema, **more).config.table_version == 9


def test_what_dagster_tells_of_a_compaction_is_read_by_the_tables_storage(
    tmp_path: Path, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path / "t", 9)
    write_batches(table, session)
    plan = planned(table)
    result = table.execute_compaction(session, plan.instant)
    rows = table.read_optimized_rows()
    assert rows == table.read_optimized(session).count() > 0
    monkeypatch.setattr(HudiTable, "read_optimized_files", lambda _: ["s3a://lake/t/a.parquet"])
    assert compaction_metadata(table, plan, result)["dagster/row_count"] == rows


def test_the_demos_table_is_where_its_block_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUDI_ASSETS_HOME", str(tmp_path))
    for named in (None, "elsewhere", "/lake", "s3://lake/demo"):
        if named is not None:
            monkeypatch.setenv("HUDI_ASSETS_WAREHOUSE", named)
        resource = TableResource(name="flights", path=f"{named or 'warehouse'}/flights")
        assert table_path() == resource.location


def test_rows_are_counted_although_a_log_file_is_gone(tmp_path: Path, session: LocalSession) -> None:
    table = new_table(tmp_path / "t", 9)
    write_batches(table, session)
    table.execute_compaction(session, planned(table).instant)
    rows = table.read_optimized_rows()
    Path(table.path, table.state().remaining_logs[0].path).unlink()
    assert table.read_optimized_rows() == rows > 0
    with pytest.raises(CorruptTable):
        table.read_optimized(session)

"""One Spark session per process, made when it is first used, against the shared catalog."""

from __future__ import annotations

from typing import Any

from dagster import InitResourceContext
from dagster_pyspark import LazyPySparkResource

from hudi_assets.engine import check_no_connected_session, connected_session, named_server, tell_of_store
from hudi_assets.shared_spark.local import HUDI_BUNDLE, LOCAL_SETTINGS, prepare, prepare_environment
from hudi_assets.shared_spark.sessions import end_session, shared_session
from hudi_assets.shared_spark.wanted import is_shared

__all__ = ["HUDI_BUNDLE", "LOCAL_SETTINGS", "SparkResource", "prepare_environment"]


class SparkResource(LazyPySparkResource):
    """dagster-pyspark's lazy session, with the catalog's address put in when the session is made.

    The address is not known earlier: the metastore's process chooses its port when it starts. With the
    in-process executor all steps of a run share this one session. A process that already has a session
    gets that one.

    With `remote`, or SPARK_REMOTE in the environment, it is a session of that Spark Connect server: its settings are
    the server's own, and no Java is started here.

    With `shared`, or HUDI_ASSETS_SHARED_SPARK=1 in the environment, each run has a session of one Spark. The first
    run starts it on this machine, with `spark_config`. It ends when no run has used it for a while. An address counts
    before it.

    A process has one kind of Spark, its own or sessions in a server: what would mix them in one run is refused.
    """

    spark_config: dict[str, Any] = dict(LOCAL_SETTINGS)  # noqa: RUF012 - a pydantic field
    remote: str | None = None
    shared: bool | None = None

    def _init_session(self) -> None:
        if self._spark_session is not None:
            return
        remote = self.remote or named_server()
        if remote:
            self._spark_session = connected_session(remote)
        elif is_shared(self.shared):
            self._spark_session = shared_session(self.spark_config)
        else:
            check_no_connected_session()
            self.spark_config.update(prepare(self.spark_config))
            super()._init_session()
            tell_of_store(self._spark_session)

    def teardown_after_execution(self, context: InitResourceContext) -> None:
        """A run's session in a server ends with the run, and what it still does there: the run may have been cancelled.

        A Spark of this process goes on: the next run in this process has it too.
        """
        session, of_server = self._spark_session, self.remote or named_server() or is_shared(self.shared)
        if session is not None and of_server:
            self._spark_session = None
            end_session(session)

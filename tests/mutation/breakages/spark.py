"""Breakages of Spark sessions and our Java."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ENGINE = "hudi_assets/engine"
FILTERS = ("tests/spark/test_slices.py",)
PLAIN_FILES = ("tests/spark/test_plain_parquet.py",)
STORES = ("tests/unit/test_spark_and_stores.py",)


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "Spark is given names of a bucket's files that Hadoop does not know",
        f"{_ENGINE}/spark/stores.py",
        '    return _S3A + uri.removeprefix("s3://") if uri.startswith("s3://") else uri\n',
        "    return uri\n",
        ("tests/unit/test_spark_and_stores.py::test_spark_knows_a_bucket_by_hadoops_name",),
    ),
    Breakage(
        "a session's own settings of its store are overwritten",
        f"{_ENGINE}/spark/stores.py",
        "    if any(_is_stated(configuration, name) for name in _STATED):\n        return\n",
        "",
        STORES,
    ),
    Breakage(
        "base files of a bucket are left to a Spark that cannot read them",
        f"{_ENGINE}/queries/query.py",
        "    if not spark.reads_by_itself(session, state.storage.base) or not have_table_types(state):\n",
        "    if not have_table_types(state):\n",
        ("tests/unit/test_spark_and_stores.py::test_base_files_that_spark_cannot_read_are_read_by_tasks",),
    ),
    Breakage(
        "a new table in a bucket is of a version that cannot be changed there",
        f"{_ENGINE}/table/layout/choice.py",
        "layout_of(version or (6 if storage.capabilities.links else 9), ",
        "layout_of(version or 6, ",
        ("tests/unit/test_spark_and_stores.py::test_a_new_table_is_one_that_its_store_can_change",),
    ),
    Breakage(
        "the workers of a Connect server may be of any version",
        f"{_ENGINE}/spark/connect.py",
        "    if here != there and None not in (here, there):\n",
        "    if False:\n",
        ("tests/unit/test_spark_connect.py::test_workers_of_another_version",),
    ),
    Breakage(
        "what workers lack comes as Spark's own error",
        f"{_ENGINE}/spark/connect.py",
        "        problem = _other_python(error) or spark_problem(error)\n",
        "        problem = None\n",
        ("tests/unit/test_spark_connect.py::test_workers_that_cannot_run_our_tasks",),
    ),
    Breakage(
        "an empty SPARK_REMOTE stays for PySpark to take for an address",
        f"{_ENGINE}/spark/connect.py",
        "    os.environ.pop(_REMOTE, None)",
        "    pass",
        ("tests/unit/test_spark_connect.py::test_an_empty_name_is_none",),
    ),
    Breakage(
        "a session that a Connect server has ended comes as Spark's own error",
        f"{_ENGINE}/spark/errors.py",
        "    if _ENDED in text:\n",
        "    if False:\n",
        ("tests/unit/test_spark_connect.py::test_a_session_that_the_server_has_ended",),
    ),
    Breakage(
        "packages of Spark Connect that are missing are not named",
        f"{_ENGINE}/spark/connect.py",
        "    if missing:\n",
        "    if False:\n",
        ("tests/unit/test_spark_connect.py::test_packages_that_are_missing_here",),
    ),
    Breakage(
        "a user that the system does not know is not told so",
        f"{_ENGINE}/spark/start.py",
        "    elif not _is_known(os.getuid()):",
        "    elif False:",
        ("tests/cli/test_environment.py::test_a_user_that_the_system_does_not_know",),
    ),
    Breakage(
        "columns that Spark computes are read from the files",
        f"{_ENGINE}/spark/parquet.py",
        'if names != {f"{_CATALYST}.expressions.AttributeReference"}:',
        "if not names:",
        ("tests/spark/test_plain_parquet.py::test_what_spark_does_to_rows_is_left_to_spark",),
    ),
    Breakage(
        "files that are not as they were listed are read",
        f"{_ENGINE}/spark/parquet.py",
        "if _ROOT.size(split.path) != split.size:",
        "if False:",
        PLAIN_FILES,
    ),
    Breakage(
        "Spark's view of a schema keeps what may not be null below a struct that is null",
        f"{_ENGINE}/spark/session.py",
        "    return pa.schema([_nullable(field) for field in schema])\n",
        "    return schema\n",
        ("tests/unit/test_schema.py::test_rows_from_before_and_after_a_change_are_read_together",),
    ),
    Breakage(
        "the Python that a user's environment names runs a local session's workers",
        f"{_ENGINE}/spark/session.py",
        """    if (context.master or "").startswith("local"):
        context.pythonExec = sys.executable""",
        """    if "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable""",
        ("tests/cli/test_environment.py::test_workers_of_a_local_session_are_this_python",),
    ),
    Breakage(
        "the engine cannot be imported without PySpark",
        f"{_ENGINE}/spark/session.py",
        "if TYPE_CHECKING:\n",
        "if True:\n",
        ("tests/unit/test_without_pyspark.py::test_what_needs_no_spark_works_and_the_rest_says_what_to_install",),
    ),
    Breakage(
        "a Java's version is read from whatever it prints first",
        f"{_ENGINE}/spark/java_runtime.py",
        """r'version "((""",
        """r'"((""",
        ("tests/cli/test_environment.py::test_a_java_that_does_not_do",),
    ),
    Breakage(
        "a failed file operation reaches the command line as a traceback",
        f"{_ENGINE}/spark/errors.py",
        "if isinstance(error, OSError):",
        "if False:",
        ("tests/cli/test_environment.py::test_a_failed_file_operation_anywhere",),
    ),
    Breakage(
        "an error of ours in one of Spark's workers is shown as Spark's",
        f"{_ENGINE}/spark/errors.py",
        "return _of_ours(text) or _of_files(text)",
        "return _of_files(text)",
        ("tests/cli/test_environment.py::test_what_spark_says_of_the_machine",),
    ),
    Breakage(
        "texts are ordered as Java orders them",
        f"{_ENGINE}/spark/java/Slices.java",
        "Integer.valueOf(Arrays.compareUnsigned(one, ((String) literal).getBytes(StandardCharsets.UTF_8)))",
        "Integer.valueOf(text.compareTo((String) literal))",
        ("tests/spark/test_slices.py::test_a_filter_leaves_out_what_it_can_and_no_more",),
    ),
    Breakage(
        "the opposite of what is not known is taken for true",
        f"{_ENGINE}/spark/java/Slices.java",
        "return one == null ? null : Boolean.valueOf(!one.booleanValue());",
        "return Boolean.valueOf(one == null || !one.booleanValue());",
        ("tests/spark/test_slices.py::test_a_filter_leaves_out_what_it_can_and_no_more",),
    ),
    Breakage(
        "a value's last slashes are forgotten",
        f"{_ENGINE}/spark/java/Slices.java",
        "return literal.startsWith(text) && (",
        "return false && (",
        ("tests/spark/test_slices.py::test_a_filter_leaves_out_what_it_can_and_no_more",),
    ),
    Breakage(
        "partitions of nulls hold none",
        f"{_ENGINE}/spark/java/Slices.java",
        "return valueOf(((IsNull) filter).attribute(), values) == null ? null : Boolean.FALSE;",
        "return Boolean.FALSE;",
        FILTERS,
    ),
    Breakage(
        "the read-optimized view opens base files that a filter leaves out",
        f"{_ENGINE}/spark/java/BaseFiles.java",
        "slices.kept(translated(dataFilters))",
        "slices.kept(new Filter[0])",
        ("tests/spark/test_queries.py::test_base_files_that_a_filter_leaves_out_are_not_opened",),
    ),
    Breakage(
        "rows that Spark has cached of older base files answer",
        f"{_ENGINE}/spark/java/BaseFiles.java",
        "((BaseFiles) other).text.equals(text)",
        "true",
        ("tests/spark/test_queries.py::test_what_is_cached_serves_later_queries_of_the_same_files",),
    ),
    Breakage(
        "a condition on files is taken for one on columns",
        f"{_ENGINE}/spark/java/BaseFiles.java",
        "filter.isDefined() && !asksOfFiles(condition)",
        "filter.isDefined()",
        ("tests/spark/test_queries.py::test_a_condition_on_files_is_none_on_a_column_of_that_name",),
    ),
    Breakage(
        "what values begin with is forgotten",
        f"{_ENGINE}/spark/java/Slices.java",
        "return Integer.signum(order.intValue()) == other ? order : null;",
        "return order;",
        ("tests/spark/test_slices.py::test_a_filter_leaves_out_what_it_can_and_no_more",),
    ),
    Breakage(
        "a session of Spark Connect fails wherever it happens to",
        f"{_ENGINE}/spark/capabilities.py",
        "    if is_connect(spark):\n        raise",
        "    if False:\n        raise",
        ("tests/spark/test_capabilities.py::test_hudis_own_classes_are_not_called_through_spark_connect",),
    ),
)

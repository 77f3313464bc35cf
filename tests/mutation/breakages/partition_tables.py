"""The freshness of each partition as a table in a catalog."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "the rows that a reader began to read are deleted under it",
        "hudi_assets/catalog/partition_folders.py",
        "_Name.of(then).is_older_than(",
        "_Name.of(old).is_older_than(",
        ("tests/catalog/test_partition_folders.py::test_what_readers_left_stays_for_an_hour",),
    ),
    Breakage(
        "the rows that readers read are deleted after a publication that failed",
        "hudi_assets/catalog/partition_folders.py",
        "    found = {folder for folder in beside if folder > sent_to}\n",
        "    found = set(beside)\n",
        ("tests/catalog/test_partition_folders.py::test_a_publication_that_failed_sent_nobody_away",),
    ),
    Breakage(
        "publications that are refused leave a file each",
        "hudi_assets/catalog/partition_table.py",
        "        folders.discard_unseen()\n",
        "",
        ("tests/catalog/test_partition_folders.py::test_a_publication_that_is_always_refused_leaves_nothing",),
    ),
    Breakage(
        "publications that nobody answers to leave files that nobody finds",
        "hudi_assets/catalog/partition_table.py",
        "hashlib.sha256(stands.place.encode())",
        "hashlib.sha256(uuid.uuid4().bytes)",
        ("tests/catalog/test_partition_folders.py::test_switched_off_it_leaves_its_rows_to_those_who_read_them",),
    ),
    Breakage(
        "the rows are deleted that a metastore sends readers to without saying so",
        "hudi_assets/catalog/publishing.py",
        "        if not isinstance(error, Conflict | hive.Refused):\n            return True\n",
        "",
        ("tests/catalog/test_partition_folders.py::test_a_publication_that_failed_sent_nobody_away",),
    ),
    Breakage(
        "the rows are deleted that a metastore sends readers to and says that it does not",
        "hudi_assets/catalog/publishing.py",
        "            return found is not None and found.parameters.get(partition_table.FOLDER) == folder\n",
        "            return False\n",
        ("tests/catalog/test_partition_folders.py::test_what_was_done_all_the_same_keeps_its_rows",),
    ),
    Breakage(
        "what cannot be deleted fails a publication of which all is told",
        "hudi_assets/catalog/partition_folders.py",
        "        with suppress(HudiAssetsError, OSError):\n            beside",
        "        if self._parent:\n            beside",
        ("tests/catalog/test_partition_folders.py::test_what_cannot_be_deleted_fails_no_publication",),
    ),
    Breakage(
        "by Spark the rows of a table that is half moved are deleted",
        "hudi_assets/catalog/spark_sql.py",
        "            return bool(self._spark.catalog.tableExists(self._quoted))\n",
        "            return False\n",
        ("tests/catalog/test_partition_folders.py::test_by_spark_a_table_that_is_half_moved_keeps_both_folders",),
    ),
    Breakage(
        "a table with the freshness of the partitions stays where it is not wanted any more",
        "hudi_assets/catalog/partition_table.py",
        "            stands.drop()\n",
        "            pass\n",
        ("tests/catalog/test_partition_publications.py::test_switched_off_it_goes_before_anybody_forgets_it",),
    ),
    Breakage(
        "the table of the partitions stays for ever where its publisher died while it was switched off",
        "hudi_assets/catalog/partition_table.py",
        "            stands.drop()\n            folders.delete_left()\n        yield\n",
        "            pass\n        yield\n        if stands.parameters is not None:\n            stands.drop()\n",
        ("tests/catalog/test_partition_publications.py::test_switched_off_it_goes_before_anybody_forgets_it",),
    ),
    Breakage(
        "the table of the partitions stays for ever where the view that named it is gone",
        "hudi_assets/catalog/publishing.py",
        "    found = metastore.entry(names.database, names.partitions)\n",
        "    ro = metastore.entry(names.database, names.ro)\n"
        "    found = None if ro is None else metastore.entry(names.database, names.partitions)\n",
        ("tests/catalog/test_partition_publications.py::test_it_goes_where_the_view_that_named_it_is_gone",),
    ),
    Breakage(
        "by Spark the table of the partitions beside synced tables is not removed",
        "hudi_assets/catalog/spark_sql.py",
        "    _drop_partitions(spark, names)\n    for view",
        "    if _view_of(spark, names, names.ro) is not None:\n        _drop_partitions(spark, names)\n    for view",
        ("tests/catalog/test_partition_publications.py::test_by_spark_it_is_removed_from_beside_synced_tables",),
    ),
    Breakage(
        "by Spark the removal of a table takes another one's table of the partitions along",
        "hudi_assets/catalog/spark_sql.py",
        "    if partition_table.is_ours(found, path):\n",
        "    if PATH in found:\n",
        (
            "tests/catalog/test_partition_publications.py::test_by_spark_what_stands_beside_another_tables_is_not_removed",
        ),
    ),
    Breakage(
        "by Spark a reason of before stays in the table of the partitions",
        "hudi_assets/catalog/spark_sql.py",
        "            _set_properties(self._spark, self._names, self._names.partitions, properties)\n",
        '            self._spark.sql(f"ALTER TABLE {self._quoted} SET TBLPROPERTIES ({_listed(properties)})")\n',
        ("tests/catalog/test_partition_publications.py::test_by_spark_nothing_of_an_earlier_publication_stays",),
    ),
    Breakage(
        "nobody notices that the freshness of the partitions is of another publication",
        "hudi_assets/catalog/places.py",
        "            beside.append(partitions)\n",
        "            pass\n",
        ("tests/catalog/test_partition_table.py::test_a_publisher_that_died_before_it_is_made_good",),
    ),
    Breakage(
        "a freshness that no timestamp reaches stops the publication",
        "hudi_assets/catalog/partition_table.py",
        "    return ms * 1000 if ms is not None and _FIRST_MS <= ms <= _LAST_MS else None\n",
        "    return ms * 1000 if ms is not None else None\n",
        ("tests/unit/test_partition_rows.py::test_a_freshness_that_no_timestamp_reaches_is_a_number_alone",),
    ),
    Breakage(
        "a partition's promise that falls stays too high where the publisher dies",
        "hudi_assets/catalog/partition_table.py",
        "    lower = lowered(read, _published(storage, told))\n",
        "    lower = None\n",
        ("tests/catalog/test_partition_publications.py::test_what_falls_is_told_before",),
    ),
    Breakage(
        "a partition's promise is told before the view has its rows",
        "hudi_assets/catalog/partition_table.py",
        "        yield\n        if last is not None:\n            _send(stands, storage, folders, last, properties)\n",
        "        if last is not None:\n            _send(stands, storage, folders, last, properties)\n        yield\n",
        ("tests/catalog/test_partition_publications.py::test_what_rises_is_told_after_the_view_has_it",),
    ),
    Breakage(
        "a promise that rises is told with another one that falls",
        "hudi_assets/catalog/partition_table.py",
        "    return replace(one, freshness=most, reason=",
        "    return replace(one, freshness=one.freshness, reason=",
        ("tests/unit/test_partition_rows.py::test_before_the_views_no_promise_is_higher_than_both",),
    ),
    Breakage(
        "nobody notices that the partitions are only told what falls",
        "hudi_assets/catalog/partition_table.py",
        "        mark = properties if last is None else {**properties, PUBLICATION: uuid.uuid4().hex}\n",
        "        mark = properties\n",
        (
            "tests/catalog/test_partition_publications.py::test_where_one_falls_and_another_rises_neither_is_told_too_much",
        ),
    ),
)

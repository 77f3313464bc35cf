"""Breakages that some test must notice, each with the quickest tests that should."""

from __future__ import annotations

from dataclasses import dataclass

_ENGINE = "hudi_assets/engine"
MERGE = ("tests/property/test_merge_modes.py",)
SELECTION = ("tests/property/test_selection.py", "tests/unit/test_strategies.py", "tests/unit/test_closure.py")
RESIDUE = ("tests/spark/test_residue.py",)
VIEW = ("tests/unit/test_file_view.py", "tests/property/test_queries.py")
QUERIES = ("tests/property/test_queries.py",)
PRUNED = ("tests/property/test_pruned_queries.py",)
CLEAN = ("tests/property/test_clean_plan.py",)
CRASHES = ("tests/crash/test_crashes.py",)
UNDO = ("tests/property/test_rollback.py", "tests/crash/test_undo_crashes.py")
LIVES = ("tests/machine",)
PAST_INSTANTS = ("tests/unit/test_placement.py", "tests/unit/test_past_instants.py")
HFILES = ("tests/unit/test_hfile.py", "tests/property/test_hfile.py")
STATED = ("tests/unit/test_stated_settings.py",)
COLUMN_STATS = ("tests/unit/test_column_stats.py",)
METADATA = ("tests/unit/test_metadata_reader.py", "tests/unit/test_metadata_records.py")
LOADS = ("tests/unit/test_bulk_insert.py",)
LOAD_CRASHES = ("tests/crash/test_bulk_insert_crashes.py",)
PACKING = ("tests/property/test_packing.py",)
THROUGH_SPARK = ("tests/spark/test_bulk_insert.py",)
FILTERS = ("tests/spark/test_slices.py",)
PLACES = ("tests/unit/test_places.py",)
BOUNDS = ("tests/unit/test_commit_bound.py",)
BLOCK_TIMES = ("tests/unit/test_block_times.py",)
ZONES = ("tests/unit/test_time_zones.py",)
PLAIN_FILES = ("tests/spark/test_plain_parquet.py",)


@dataclass(frozen=True)
class Breakage:
    """`old` stands once in `file`; with `new` in its place one of `tests` has to fail."""

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


BREAKAGES: tuple[Breakage, ...] = (
    # -- merge
    Breakage(
        "of equal ordering values the earlier record wins against the base row",
        f"{_ENGINE}/merging/winners.py",
        "(won >= base).fill_null(False)",
        "(won > base).fill_null(False)",
        MERGE,
    ),
    Breakage(
        "of equal ordering values in logs the earlier one wins",
        f"{_ENGINE}/merging/winners.py",
        "    np.maximum.at(last, numbers[records], records)\n",
        "    last[numbers[records][::-1]] = records[::-1]\n",
        MERGE,
    ),
    Breakage(
        "a delete in commit order is compared as any other",
        f"{_ENGINE}/merging/winners.py",
        "    if not barrier.any():\n        return _greatest",
        "    if True:\n        return _greatest",
        MERGE,
    ),
    Breakage(
        "a delete in commit order also beats what comes after it",
        f"{_ENGINE}/merging/winners.py",
        "records[records >= last[numbers]]), last > _NONE",
        "records[(last[numbers] == _NONE) | (records == last[numbers])]), last > _NONE",
        MERGE,
    ),
    Breakage(
        "a delete in commit order leaves the base row",
        f"{_ENGINE}/merging/winners.py",
        "records[records >= last[numbers]]), last > _NONE",
        "records[records >= last[numbers]]), last > len(numbers)",
        MERGE,
    ),
    Breakage(
        "a null in _hoodie_is_deleted deletes",
        f"{_ENGINE}/merging/merge.py",
        "pc.fill_null(table.column(IS_DELETED), False)",
        "pc.fill_null(table.column(IS_DELETED), True)",
        MERGE,
    ),
    Breakage(
        "commit-time ordering takes the first record",
        f"{_ENGINE}/merging/winners.py",
        "won = _last(numbers, len(keys), np.arange(len(numbers)))",
        "won = np.unique(numbers, return_index=True)[1]",
        MERGE,
    ),
    Breakage(
        "a pass forgets what an earlier one replaced in the base file",
        f"{_ENGINE}/merging/passes.py",
        "now if decided.replaced is None else decided.replaced | now",
        "now",
        MERGE,
    ),
    Breakage(
        "blocks that are read again are read for their keys alone",
        f"{_ENGINE}/merging/passes.py",
        "if number in self._kept else self.source.block(number, self._names)",
        "if number in self._kept else self.source.block(number, head_columns(self.ordering))",
        MERGE,
    ),
    Breakage(
        "keys are not dealt into parts",
        f"{_ENGINE}/merging/passes.py",
        "(pl.Series(head.keys).hash() % parts == part)",
        "(pl.Series(head.keys).hash() % parts >= 0)",
        ("tests/unit/test_parts.py",),
    ),
    Breakage(
        "as 0.x merges, a delete block's delete is compared with the base row",
        f"{_ENGINE}/merging/winners.py",
        "            barred = ~from_rows[won]",
        "            barred = barred & False",
        MERGE,
    ),
    Breakage(
        "as 0.x merges, a row that won is not compared with the base row",
        f"{_ENGINE}/merging/winners.py",
        "        if mode.compares_base_rows:\n            barred",
        "        if False:\n            barred",
        MERGE,
    ),
    Breakage(
        "as 0.x merges, dates of delete blocks are compared",
        f"{_ENGINE}/merging/winners.py",
        "pa.types.is_string(type_) or pa.types.is_date(type_) or",
        "pa.types.is_string(type_) or",
        MERGE,
    ),
    Breakage(
        "a table that 0.x created is merged by 1.x's rules",
        f"{_ENGINE}/settings/config.py",
        "parse_config({**evident_rules(properties), **properties, **overlay}",
        "parse_config({**properties, **overlay}",
        ("tests/unit/test_merge_rules.py",),
    ),
    Breakage(
        "a setting given by a reader is taken for evidence of who created the table",
        f"{_ENGINE}/settings/config.py",
        "parse_config({**evident_rules(properties), **properties, **overlay}",
        "parse_config({**evident_rules({**properties, **overlay}), **properties, **overlay}",
        ("tests/unit/test_merge_rules.py",),
    ),
    # -- selection
    Breakage(
        "as 0.x merges, a due delete parts the slice",
        f"{_ENGINE}/compaction/closure.py",
        "return bool(deleting) or _a_remaining_delete_may",
        "return _a_remaining_delete_may",
        (*SELECTION, *MERGE),
    ),
    Breakage(
        "as 0.x merges, a remaining delete below what is merged parts the slice",
        f"{_ENGINE}/compaction/closure.py",
        "return bool(deleting) or _a_remaining_delete_may_decide_otherwise(known, selected, rule)",
        "return bool(deleting)",
        (*SELECTION, *MERGE),
    ),
    Breakage(
        "as 0.x merges, rows may be due after a remaining delete",
        f"{_ENGINE}/compaction/closure.py",
        "if not rule.by_event_time or any(selected[first:]):",
        "if not rule.by_event_time:",
        (*SELECTION, *MERGE),
    ),
    Breakage(
        "as 0.x merges, rows below what is merged remain after a remaining delete",
        f"{_ENGINE}/compaction/closure.py",
        "for s in known[first:])\n\n\ndef _highest",
        "for s in known[first : first + 1])\n\n\ndef _highest",
        (*SELECTION, *MERGE),
    ),
    Breakage(
        "a log file that begins at the threshold is left",
        f"{_ENGINE}/compaction/strategy.py",
        "or low <= threshold)",
        "or low < threshold)",
        SELECTION,
    ),
    Breakage(
        "an earlier log that may tie with a selected one is left",
        f"{_ENGINE}/compaction/closure.py",
        "(low is None or highest >= low)",
        "(low is None or highest > low)",
        SELECTION,
    ),
    Breakage(
        "another ordering field is closed by ranges, not by prefix",
        f"{_ENGINE}/compaction/closure.py",
        "if rule.mode is MergeMode.EVENT_TIME_ORDERING and rule.by_event_time:",
        "if rule.mode is MergeMode.EVENT_TIME_ORDERING:",
        SELECTION,
    ),
    Breakage(
        "tombstones are forgotten while older records remain",
        f"{_ENGINE}/compaction/closure.py",
        "    deleting = [s for s in taken if s.deletes != s.barriers]",
        "    deleting = [s for s in taken if s.deletes is None]",
        SELECTION,
    ),
    Breakage(
        "a rollback block is parted from its target",
        f"{_ENGINE}/compaction/closure.py",
        "if any(s.rollbacks for s in known):",
        "if False:",
        SELECTION,
    ),
    Breakage(
        "a delete in commit order takes the whole slice",
        f"{_ENGINE}/compaction/closure.py",
        "if s.deletes != s.barriers]",
        "if s.deletes != 0]",
        SELECTION,
    ),
    Breakage(
        "a delete in commit order hides one with an ordering value",
        f"{_ENGINE}/compaction/closure.py",
        "if s.deletes != s.barriers]",
        "if s.deletes != 0 and not s.barriers]",
        SELECTION,
    ),
    # -- residue log and exact split
    Breakage(
        "the residue log forgets its tombstones",
        f"{_ENGINE}/compaction/residue.py",
        "        if group not in self.spec.lowest:",
        "        if True:",
        RESIDUE,
    ),
    Breakage(
        "the exact split lets records above the threshold into the base file",
        f"{_ENGINE}/compaction/residue.py",
        "pc.greater(micros, pa.scalar(self.spec.split_at * 1000, pa.int64()))",
        "pc.greater(micros, pa.scalar((self.spec.split_at + 60_000) * 1000, pa.int64()))",
        RESIDUE,
    ),
    # -- view and queries
    Breakage(
        "base files of unfinished instants count",
        f"{_ENGINE}/slices/file_view.py",
        "        elif committed[file.instant]:",
        "        else:",
        VIEW,
    ),
    Breakage(
        "a pending compaction's slice hides the older one",
        f"{_ENGINE}/slices/file_view.py",
        "return replace(older, log_files=older.log_files + added)",
        "return newest",
        VIEW,
    ),
    Breakage(
        "what is appended beside a pending plan is not read",
        f"{_ENGINE}/slices/file_view.py",
        "added = tuple(log for log in newest.log_files if log.path not in carried)",
        "added = tuple(log for log in newest.log_files if log.path in carried)",
        LIVES,
    ),
    Breakage(
        "instants before the timeline's start do not count",
        f"{_ENGINE}/timeline/instants.py",
        "return self.start is not None and timestamp < self.start",
        "return False",
        VIEW,
    ),
    Breakage(
        "time travel shows the slice that begins just after the instant",
        f"{_ENGINE}/slices/history.py",
        "if s.base_instant <= t))",
        "if s.base_instant < t))",
        QUERIES,
    ),
    # -- ranges
    Breakage(
        "older rows of which nothing is known are thought to lose",
        f"{_ENGINE}/queries/in_range.py",
        "bounds is not None and (bounds.high is None or bounds.high <= least)",
        "bounds is None or bounds.high is None or bounds.high <= least",
        PRUNED,
    ),
    Breakage(
        "a row without an ordering value is thought to win against older ones",
        f"{_ENGINE}/queries/in_range.py",
        "if any(column.null_count for column in columns):",
        "if False:",
        PRUNED,
    ),
    Breakage(
        "delete blocks before a range are left out",
        f"{_ENGINE}/queries/in_range.py",
        "return _merged(reader, None, [*deletes, *newer])",
        "return _merged(reader, None, newer)",
        PRUNED,
    ),
    Breakage(
        "base rows are never of a range",
        f"{_ENGINE}/queries/in_range.py",
        "return times is None or (times.high is not None and times.high > commits.begin)",
        "return False",
        PRUNED,
    ),
    # -- event times of log files
    Breakage(
        "the data latency is not taken off a commit",
        f"{_ENGINE}/event_time/commit_bound.py",
        "return Bound(at - self.latency_ms,",
        "return Bound(at,",
        BOUNDS,
    ),
    Breakage(
        "a bound hides the event times beside it",
        f"{_ENGINE}/event_time/commit_bound.py",
        "return lowest if undated.low is None else lowest._replace",
        "return lowest if True else lowest._replace",
        BOUNDS,
    ),
    Breakage(
        "a bound goes by the table's latency, not the call's",
        f"{_ENGINE}/look.py",
        "summaries = bounded_summaries(state, latency)",
        "summaries = bounded_summaries(state)",
        BOUNDS,
    ),
    Breakage(
        "rows without event time count at their commit too",
        f"{_ENGINE}/event_time/commit_bound.py",
        "found.append(self._less_latency(undated.rows))",
        "found.append(self._at_commit(undated.rows))",
        BOUNDS,
    ),
    Breakage(
        "of the hour that comes twice the second counts",
        f"{_ENGINE}/event_time/commit_bound.py",
        "return ms - _HOUR_MS if earlier.startswith(instant) else ms",
        "return ms",
        BOUNDS,
    ),
    Breakage(
        "a header says what is in the file, and not what came",
        f"{_ENGINE}/writing/write.py",
        "        times = replace(times, low=covered.min, high=covered.max)\n",
        "        pass\n",
        BLOCK_TIMES,
    ),
    Breakage(
        "a header is believed in another block",
        f"{_ENGINE}/logs/block_times.py",
        "return schema if schema.get(INSTANT_PROPERTY) == block.instant_time else None",
        "return schema",
        BLOCK_TIMES,
    ),
    Breakage(
        "a header is believed for another column",
        f"{_ENGINE}/logs/block_times.py",
        "or schema.get(COLUMN_PROPERTY) != column:",
        "or not schema.get(COLUMN_PROPERTY):",
        BLOCK_TIMES,
    ),
    Breakage(
        "contents are read although the header says it",
        f"{_ENGINE}/logs/summaries.py",
        "        if times is None:\n",
        "        if times is None or block.is_data:\n",
        BLOCK_TIMES,
    ),
    Breakage(
        "a delete block's content is read although its header says it",
        f"{_ENGINE}/logs/summaries.py",
        "        if times is None:\n",
        "        if times is None or not block.is_data:\n",
        BLOCK_TIMES,
    ),
    Breakage(
        "an older header's minimum is passed over",
        f"{_ENGINE}/logs/summaries.py",
        "if stated is None or times.low is None or stated >= times.low:",
        "if True:",
        BLOCK_TIMES,
    ),
    # -- clean
    Breakage(
        "the slice that the earliest retained commit reads is cleaned",
        f"{_ENGINE}/housekeeping/clean_plan.py",
        "if inventory.replaced_before(new.base_instant, earliest))",
        "if inventory.replaced_before(old.base_instant, earliest))",
        CLEAN,
    ),
    Breakage(
        "savepointed slices are cleaned",
        f"{_ENGINE}/housekeeping/clean_plan.py",
        "saved = [s for s in slices if inventory.savepointed.intersection(slice_files(s))]",
        "saved: list[FileSlice] = []",
        CLEAN,
    ),
    Breakage(
        "what a pending compaction reads is cleaned",
        f"{_ENGINE}/housekeeping/clean_plan.py",
        "compacting = [s for s in slices if reads is not None and s.base_instant >= reads]",
        "compacting: list[FileSlice] = []",
        CLEAN,
    ),
    Breakage(
        "one commit too few is retained",
        f"{_ENGINE}/housekeeping/clean_plan.py",
        "chosen = completed[-keep.retained] if",
        "chosen = completed[-keep.retained + 1] if",
        CLEAN,
    ),
    # -- order of writes
    Breakage(
        "links are made without a guard",
        f"{_ENGINE}/timeline/publish.py",
        "        if carried and guard is not None:\n            self.publish_guard(guard, plan.instant)",
        "        if False:\n            self.publish_guard(guard, plan.instant)",
        CRASHES,
    ),
    Breakage(
        "a dead write keeps its log files",
        f"{_ENGINE}/undo/recover.py",
        "            for path in files:\n                storage.delete(path)\n            publisher.withdraw_write",
        "            publisher.withdraw_write",
        CRASHES,
    ),
    Breakage(
        "freshness is the minimum itself",
        f"{_ENGINE}/event_time/freshness.py",
        "min(mark, lowest - 1)",
        "min(mark, lowest)",
        LIVES,
    ),
    # -- the metadata table
    Breakage(
        "blocks of HFiles grow to a size at which Hudi's own reader loses records",
        f"{_ENGINE}/metadata_table/hfile.py",
        "BLOCK_SIZE: Final = 64 * 1024",
        "BLOCK_SIZE: Final = 1024 * 1024",
        HFILES,
    ),
    Breakage(
        "the checksums of unpacked blocks are not looked at",
        f"{_ENGINE}/metadata_table/hfile_blocks.py",
        "    if kind == _Checksum.NONE:\n        return",
        "    if kind >= _Checksum.NONE:\n        return",
        HFILES,
    ),
    Breakage(
        "an HFile that lacks entries is taken for whole",
        f"{_ENGINE}/metadata_table/hfile.py",
        "        if count != len(self):",
        "        if count > len(self):",
        HFILES,
    ),
    Breakage(
        "a lookup passes over the block before the first greater index key",
        f"{_ENGINE}/metadata_table/hfile.py",
        "if following is not None and following < prefix:",
        "if following is not None and following <= prefix + b'\\xff':",
        HFILES,
    ),
    Breakage(
        "a base file has column statistics of its keys alone",
        f"{_ENGINE}/metadata_table/column_stats.py",
        "return column in self._definition.columns",
        'return column == "_hoodie_record_key"',
        COLUMN_STATS,
    ),
    Breakage(
        "the metadata table's own compaction leaves column statistics behind",
        f"{_ENGINE}/metadata_table/compaction.py",
        "        used = COLUMN_STATS in named(table_properties(self.storage).get(COMPLETED))",
        "        used = False",
        COLUMN_STATS,
    ),
    Breakage(
        "a footer without bounds is a column of nulls",
        f"{_ENGINE}/metadata_table/footer_stats.py",
        "        bounds = _scanned(file, path, kind)",
        "        bounds = None",
        COLUMN_STATS,
    ),
    Breakage(
        "bytes of a negative decimal are longer than Java's",
        f"{_ENGINE}/metadata_table/footer_stats.py",
        "(number + (number < 0)).bit_length()",
        "number.bit_length()",
        COLUMN_STATS,
    ),
    Breakage(
        "a write that an index of records has merged is rolled back",
        f"{_ENGINE}/metadata_table/policy.py",
        "if written and (not delta or own.has_merged(delta[0])):",
        "if written and not delta:",
        ("tests/unit/test_metadata_writer.py",),
    ),
    Breakage(
        "a savepoint names no log file of a later slice",
        f"{_ENGINE}/housekeeping/savepoint.py",
        "    if state.layout.has_completion_times:",
        "    if not state:",
        ("tests/unit/test_housekeeping_v2.py",),
    ),
    Breakage(
        "what belongs to a pending instant of the data table counts",
        f"{_ENGINE}/metadata_table/reader.py",
        "return self.is_committed(timestamp) and timestamp not in self._pending",
        "return self.is_committed(timestamp)",
        METADATA,
    ),
    Breakage(
        "a rollback block of the metadata table is passed over",
        f"{_ENGINE}/metadata_table/reader.py",
        "found = [pair for pair in found if pair[0] != block.target_instant_time]",
        "pass",
        METADATA,
    ),
    Breakage(
        "a tombstone in a log leaves nothing where the base file has the name",
        f"{_ENGINE}/metadata_table/records.py",
        "        if known is None:\n            files[name] = file",
        "        if known is None:\n            if not file.deleted:\n                files[name] = file",
        METADATA,
    ),
    Breakage(
        "archived log files of an older slice are read into the newest one",
        f"{_ENGINE}/metadata_table/slices.py",
        "completions.get(instant) or (instant if _is_archived(instant, own) else None)",
        "completions.get(instant)",
        METADATA,
    ),
    # -- writing
    Breakage(
        "a bulk insert goes into file groups that hold rows",
        f"{_ENGINE}/writing/writer.py",
        "        if operation == BULK_INSERT:\n            self._check_empty",
        "        if False:\n            self._check_empty",
        LOADS,
    ),
    Breakage(
        "a bulk insert writes every row of a key",
        f"{_ENGINE}/writing/base_files.py",
        "if grown is None and not deletes and _differ(came.column(KEY)):",
        "if grown is None and not deletes:",
        LOADS,
    ),
    Breakage(
        "a delete among a bulk insert's rows is written as a row",
        f"{_ENGINE}/writing/base_files.py",
        "deletes = IS_DELETED in came.schema.names and pc.any(came.column(IS_DELETED)).as_py()",
        "deletes = False",
        LOADS,
    ),
    Breakage(
        "faulty rows are found, and written",
        f"{_ENGINE}/writing/writer.py",
        "for fault, rows in total.faults.items():",
        "for fault, rows in ():",
        LOADS,
    ),
    Breakage(
        "a bulk insert's base file has no marker",
        f"{_ENGINE}/writing/base_files.py",
        'spec.storage.create(marker_path(spec.instant, path, "CREATE" if grown is None else "MERGE"), b"")',
        "pass",
        LOAD_CRASHES,
    ),
    Breakage(
        "parcels come in the order of Spark's shuffle",
        f"{_ENGINE}/writing/pieces.py",
        "for number in sorted(streams):",
        "for number in list(streams):",
        PACKING,
    ),
    Breakage(
        "rows of a file group lose their order among each other",
        f"{_ENGINE}/writing/packing.py",
        'rows.take(pa.array(np.argsort(ranks, kind="stable")))',
        "rows.take(pa.array(np.lexsort((-np.arange(len(ranks)), ranks))))",
        PACKING,
    ),
    Breakage(
        "a character beyond the first plane is one unit to the hash of a key",
        f"{_ENGINE}/writing/keys.py",
        "units = ((data & 0xC0) != 0x80).astype(np.int64) + (data >= 0xF0)",
        "units = ((data & 0xC0) != 0x80).astype(np.int64)",
        PACKING,
    ),
    Breakage(
        "parcels in files come in reverse",
        f"{_ENGINE}/writing/exchange.py",
        "shares[homes[place.slot]].append(place)",
        "shares[homes[place.slot]].insert(0, place)",
        THROUGH_SPARK,
    ),
    Breakage(
        "columns that Spark computes are read from the files",
        f"{_ENGINE}/spark_parquet.py",
        'if names != {f"{_CATALYST}.expressions.AttributeReference"}:',
        "if not names:",
        PLAIN_FILES,
    ),
    Breakage(
        "files that are not as they were listed are read",
        f"{_ENGINE}/spark_parquet.py",
        "if _ROOT.size(split.path) != split.size:",
        "if False:",
        PLAIN_FILES,
    ),
    Breakage(
        "Spark's view of a schema keeps what may not be null below a struct that is null",
        f"{_ENGINE}/spark.py",
        "    return pa.schema([_nullable(field) for field in schema])\n",
        "    return schema\n",
        ("tests/unit/test_schema.py",),
    ),
    # -- past instants
    Breakage(
        "a log file requested below the plan's instant, and completed above it, is kept",
        f"{_ENGINE}/compaction/placement.py",
        "log.base_instant <= instant and completion > low",
        "False",
        PAST_INSTANTS,
    ),
    Breakage(
        "a plan may stand before the active timeline's start",
        f"{_ENGINE}/compaction/placement.py",
        "max([self.floor, slice_.base_instant",
        "max([slice_.base_instant",
        PAST_INSTANTS,
    ),
    Breakage(
        "a plan may stand above an unfinished write",
        f"{_ENGINE}/compaction/placement.py",
        "return self.ceiling is None or self._free(low) < self.ceiling",
        "return True",
        PAST_INSTANTS,
    ),
    Breakage(
        "a write that turned up below a plan is overlooked",
        f"{_ENGINE}/concurrency/stragglers.py",
        "if write.timestamp < plan.instant:",
        "if False:",
        PAST_INSTANTS,
    ),
    Breakage(
        "two completions of one instant both stand",
        f"{_ENGINE}/timeline/publish.py",
        "            self._alone(instant, action, path)\n",
        "            pass\n",
        PAST_INSTANTS,
    ),
    Breakage(
        "versions of carried-over log files begin anew",
        f"{_ENGINE}/layout/v6.py",
        "enumerate(remaining, start=slice_.next_log_version)",
        "enumerate(remaining, start=2)",
        ("tests/unit/test_file_view.py",),
    ),
    # -- time zones
    Breakage(
        "the zone of the process counts, whatever the table's files say",
        f"{_ENGINE}/timeline/zone_check.py",
        "if verdict.finding is Finding.DISAGREES and not _writers_are_ahead_of_utc(config, verdict):",
        "if False:",
        ZONES,
    ),
    Breakage(
        "where nothing speaks for the process's zone, it counts",
        f"{_ENGINE}/timeline/zone_check.py",
        "if config.timezone != LOCAL or verdict.finding is Finding.AGREES:",
        "if True:",
        ZONES,
    ),
    Breakage(
        "a file that is older than its instant proves nothing",
        f"{_ENGINE}/timeline/zone_evidence.py",
        "if -_MOST_QUARTERS * QUARTER_MS <= lag < -QUARTER_MS // 2:",
        "if False:",
        ZONES,
    ),
    Breakage(
        "the times of a copy's files are taken for its writers'",
        f"{_ENGINE}/timeline/zone_evidence.py",
        "return spread >= _FOLLOWS_MS and max(lags) - min(lags) <= spread // 2",
        "return True",
        ZONES,
    ),
    Breakage(
        "whoever changes the table does not ask for the zone",
        f"{_ENGINE}/undo/recover.py",
        "    state.refuse_other_zone()\n",
        "",
        ZONES,
    ),
    Breakage(
        "a plan is executed in another zone",
        f"{_ENGINE}/compaction/executor.py",
        "                state.refuse_other_zone()\n",
        "",
        ZONES,
    ),
    Breakage(
        "an unfinished write's begin is read in any zone",
        f"{_ENGINE}/look.py",
        "missing=missing or _unknown_times(state, summaries)",
        "missing=missing",
        ZONES,
    ),
    Breakage(
        "a latency is learned in any zone",
        f"{_ENGINE}/event_time/lateness.py",
        "    if not _tells_time(state):\n        return\n",
        "",
        ZONES,
    ),
    Breakage(
        "a commit bounds its records in any zone",
        f"{_ENGINE}/event_time/commit_bound.py",
        "return None if self.state.zone_problem else requested_ms",
        "return requested_ms",
        ZONES,
    ),
    Breakage(
        "instants are begun in an hour that comes again",
        f"{_ENGINE}/timeline/clock.py",
        "            _refuse_first_pass(now, timezone, where)\n",
        "            pass\n",
        ZONES,
    ),
    Breakage(
        "a place above an instant is sought by the clock, which may have been put back",
        f"{_ENGINE}/timeline/instants.py",
        "return format_instant(instant_ms(timestamp, UTC) + by_ms, UTC)",
        'return format_instant(instant_ms(timestamp, "America/Los_Angeles") + by_ms, "America/Los_Angeles")',
        ZONES,
    ),
    # -- settings and refusals
    Breakage(
        "with one of Hudi's strategies the event-time trigger is always due",
        f"{_ENGINE}/compaction/planning.py",
        "if isinstance(chosen, Plan) and settings.due_by_event_time and threshold is not None:",
        "if False:",
        ("tests/unit/test_planning.py",),
    ),
    Breakage(
        "a log file that the strategy takes is never old enough for the event-time trigger",
        f"{_ENGINE}/compaction/triggers.py",
        "if any(time is None or time <= threshold for time in times):",
        "if any(time is None or time < threshold for time in times):",
        ("tests/unit/test_planning.py",),
    ),
    Breakage(
        "a key that is not followed is passed over",
        f"{_ENGINE}/settings/stated.py",
        "if undone is not None and value.strip().lower() != undone.same:",
        "if False:",
        STATED,
    ),
    Breakage(
        "the cleaner's keys are known by their older names alone",
        f"{_ENGINE}/settings/stated.py",
        "return {**settings, **renamed}",
        "return dict(settings)",
        STATED,
    ),
    Breakage(
        "a writer's option may contradict the table",
        f"{_ENGINE}/settings/stated.py",
        "if stated is not None and _listed(stated) != _listed(value):",
        "if False:",
        STATED,
    ),
    Breakage(
        "decimals without room in the column statistics are planned for",
        f"{_ENGINE}/compaction/statistics_room.py",
        "if pc.any(without_room(rows, path, kind)).as_py():",
        "if False:",
        COLUMN_STATS,
    ),
    Breakage(
        "a table without a first commit is called damaged",
        f"{_ENGINE}/state.py",
        '            raise Conflict(\n                "The table has no schema yet',
        '            raise CorruptTable(\n                "The table has no schema yet',
        ("tests/unit/test_refusals.py",),
    ),
    Breakage(
        "a log file of an unfinished write may not vanish under a query",
        f"{_ENGINE}/logs/reader.py",
        "if path not in committed.unfinished:",
        "if True:",
        ("tests/crash/test_reading_beside_rollback.py",),
    ),
    Breakage(
        "a log file of a commit may vanish under a query",
        f"{_ENGINE}/logs/reader.py",
        "if path not in committed.unfinished:",
        "if False:",
        ("tests/crash/test_reading_beside_rollback.py",),
    ),
    Breakage(
        "a file of the timeline that goes after it was listed is an error of the machine's",
        f"{_ENGINE}/state.py",
        "        except FileNotFoundError as error:\n            raise Conflict(",
        "        except ZeroDivisionError as error:\n            raise Conflict(",
        ("tests/unit/test_timeline_in_motion.py",),
    ),
    # -- what a filter leaves out
    Breakage(
        "texts are ordered as Java orders them",
        f"{_ENGINE}/Slices.java",
        "Integer.valueOf(Arrays.compareUnsigned(one, ((String) literal).getBytes(StandardCharsets.UTF_8)))",
        "Integer.valueOf(text.compareTo((String) literal))",
        FILTERS,
    ),
    Breakage(
        "the opposite of what is not known is taken for true",
        f"{_ENGINE}/Slices.java",
        "return one == null ? null : Boolean.valueOf(!one.booleanValue());",
        "return Boolean.valueOf(one == null || !one.booleanValue());",
        FILTERS,
    ),
    Breakage(
        "a partition's path is read in another style than it has",
        f"{_ENGINE}/queries/places.py",
        "if styled != config.hive_style:",
        "if False:",
        PLACES,
    ),
    Breakage(
        "an encoded path is taken for a value",
        f"{_ENGINE}/queries/places.py",
        "elif _ESCAPE.search(text):",
        "elif False:",
        PLACES,
    ),
    Breakage(
        "partitions are left out where an index may have left rows in them",
        f"{_ENGINE}/queries/query.py",
        "by_partition = state.config.partitioned and leaves_no_row_behind(state)",
        "by_partition = True",
        ("tests/spark/test_queries.py",),
    ),
    Breakage(
        "a value's last slashes are forgotten",
        f"{_ENGINE}/Slices.java",
        "return literal.startsWith(text) && (",
        "return false && (",
        FILTERS,
    ),
    Breakage(
        "partitions of nulls hold none",
        f"{_ENGINE}/Slices.java",
        "return valueOf(((IsNull) filter).attribute(), values) == null ? null : Boolean.FALSE;",
        "return Boolean.FALSE;",
        FILTERS,
    ),
    Breakage(
        "tables of other key generators are written",
        f"{_ENGINE}/settings/key_generators.py",
        "return generator in (NONPARTITIONED, SIMPLE, COMPLEX)",
        "return True",
        ("tests/unit/test_refusals.py",),
    ),
    Breakage(
        "the read-optimized view opens base files that a filter leaves out",
        f"{_ENGINE}/BaseFiles.java",
        "slices.kept(translated(dataFilters))",
        "slices.kept(new Filter[0])",
        ("tests/spark/test_queries.py",),
    ),
    Breakage(
        "rows that Spark has cached of older base files answer",
        f"{_ENGINE}/BaseFiles.java",
        "((BaseFiles) other).text.equals(text)",
        "true",
        ("tests/spark/test_queries.py",),
    ),
    Breakage(
        "a condition on files is taken for one on columns",
        f"{_ENGINE}/BaseFiles.java",
        "filter.isDefined() && !asksOfFiles(condition)",
        "filter.isDefined()",
        ("tests/spark/test_queries.py",),
    ),
    Breakage(
        "what values begin with is forgotten",
        f"{_ENGINE}/Slices.java",
        "return Integer.signum(order.intValue()) == other ? order : null;",
        "return order;",
        FILTERS,
    ),
)

"""Breakages of actions: compaction, writes, cleans, rollbacks, and their transactions."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ENGINE = "hudi_assets/engine"
MERGE = ("tests/property/test_merge_modes.py",)
SELECTION = ("tests/property/test_selection.py", "tests/unit/test_strategies.py", "tests/unit/test_closure.py")
CLOSURE = ("tests/unit/test_closure.py",)
RESIDUE = ("tests/spark/test_residue.py",)
CLEAN = ("tests/property/test_clean_plan.py",)
CRASHES = ("tests/crash/test_crashes.py",)
LINKS = ("tests/unit/test_links.py",)
PAST_INSTANTS = ("tests/unit/test_placement.py", "tests/unit/test_past_instants.py")
COLUMN_STATS = ("tests/unit/test_column_stats.py",)
ATTEMPTS = ("tests/crash/test_late_attempts.py", "tests/unit/test_attempts.py")
LOADS = ("tests/unit/test_bulk_insert.py",)
LOAD_CRASHES = ("tests/crash/test_bulk_insert_crashes.py",)
PACKING = ("tests/property/test_packing.py",)
LOST_LOCK = ("tests/unit/test_lost_lock.py",)
THROUGH_SPARK = ("tests/spark/test_bulk_insert.py",)
BLOCK_TIMES = ("tests/unit/test_block_times.py",)
ZONES = ("tests/unit/test_time_zones.py",)
UNITS = ("tests/unit/test_event_time_units.py", "tests/property/test_event_time_units.py")
QUERY_TIME = ("tests/unit/test_query_grace.py", "tests/unit/test_planning.py")
SERIES = ("tests/cli/test_series.py",)
FIRST_CONTACT = ("tests/cli/test_first_contact.py",)
LOOKS = ("tests/unit/test_one_look.py", "tests/unit/test_look_numbers.py")
NOTED_VIEWS = ("tests/catalog/test_clean_from_python.py",)


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "a plan does not tell Hudi in which partitions it leaves log files",
        "hudi_assets/engine/actions/compaction/planning.py",
        "left=_left(state, settled))",
        "left=())",
        ("tests/unit/test_left_partitions.py",),
    ),
    Breakage(
        "a published plan does not say in which partitions log files stay",
        "hudi_assets/engine/timeline/compaction_plan.py",
        "list(plan.left) or None",
        "None",
        ("tests/unit/test_left_partitions.py",),
    ),
    Breakage(
        "as 0.x merges, a due delete parts the slice",
        f"{_ENGINE}/actions/compaction/closure.py",
        "return _a_base_row_may_come_back(known, selected, rule) or _a",
        "return _a",
        CLOSURE,
    ),
    Breakage(
        "as 0.x merges, a delete in commit order parts a slice with rows below its base rows",
        f"{_ENGINE}/actions/compaction/closure.py",
        "return not rule.by_event_time or (lowest < math.inf and rule.base_highest() > lowest)",
        "return not rule.by_event_time",
        MERGE,
    ),
    Breakage(
        "as 1.x merges, a delete in commit order parts a slice with rows below its base rows",
        f"{_ENGINE}/actions/compaction/closure.py",
        "any(s.deletes != s.barriers for s in remaining) or _may_lie_below_a_base_row(remaining, rule)",
        "any(s.deletes != s.barriers for s in remaining)",
        CLOSURE,
    ),
    Breakage(
        "as 1.x merges, a delete in commit order parts a slice with deletes that it passes over",
        f"{_ENGINE}/actions/compaction/closure.py",
        "any(s.deletes != s.barriers for s in remaining) or _may_lie_below_a_base_row(remaining, rule)",
        "_may_lie_below_a_base_row(remaining, rule)",
        CLOSURE,
    ),
    Breakage(
        "as 1.x merges, a remaining delete in commit order parts a slice with rows below what is merged",
        f"{_ENGINE}/actions/compaction/closure.py",
        "not selected[i] and _may_have_one_in_commit_order(s)), None)",
        "selected[i] and _may_have_one_in_commit_order(s)), None)",
        CLOSURE,
    ),
    Breakage(
        "a log file of which nothing is known has no delete in commit order",
        f"{_ENGINE}/actions/compaction/closure.py",
        "    return summary.deletes is None or summary.barriers > 0",
        "    return summary.barriers > 0",
        CLOSURE,
    ),
    Breakage(
        "as 0.x merges, a remaining delete below what is merged parts the slice",
        f"{_ENGINE}/actions/compaction/closure.py",
        " or _a_remaining_delete_may_decide_otherwise(\n            known, selected, rule\n        )",
        "",
        CLOSURE,
    ),
    Breakage(
        "as 0.x merges, rows may be due after a remaining delete",
        f"{_ENGINE}/actions/compaction/closure.py",
        "if not rule.by_event_time or any(selected[first:]):",
        "if not rule.by_event_time:",
        CLOSURE,
    ),
    Breakage(
        "as 0.x merges, rows below what is merged remain after a remaining delete",
        f"{_ENGINE}/actions/compaction/closure.py",
        "return not any(s.lowest < highest for s in known[first:])",
        "return not any(s.lowest < highest for s in known[first : first + 1])",
        CLOSURE,
    ),
    Breakage(
        "a log file that begins at the threshold is left",
        f"{_ENGINE}/actions/compaction/strategy.py",
        "or low <= threshold)",
        "or low < threshold)",
        SELECTION,
    ),
    Breakage(
        "an earlier log that may tie with a selected one is left",
        f"{_ENGINE}/actions/compaction/closure.py",
        "(low is None or highest >= low)",
        "(low is None or highest > low)",
        SELECTION,
    ),
    Breakage(
        "another ordering field is closed by ranges, not by prefix",
        f"{_ENGINE}/actions/compaction/closure.py",
        "rule.mode.compares_base_rows and rule.by_event_time:",
        "rule.mode.compares_base_rows:",
        SELECTION,
    ),
    Breakage(
        "tombstones are forgotten while older records remain",
        f"{_ENGINE}/actions/compaction/closure.py",
        "    deleting = [s for s in taken if s.deletes != s.barriers]",
        "    deleting = [s for s in taken if s.deletes is None]",
        SELECTION,
    ),
    Breakage(
        "a rollback block is parted from its target",
        f"{_ENGINE}/actions/compaction/closure.py",
        "if any(s.rollbacks for s in known):",
        "if False:",
        SELECTION,
    ),
    Breakage(
        "a delete in commit order takes the whole slice",
        f"{_ENGINE}/actions/compaction/closure.py",
        "if s.deletes != s.barriers]",
        "if s.deletes != 0]",
        SELECTION,
    ),
    Breakage(
        "a delete in commit order hides one with an ordering value",
        f"{_ENGINE}/actions/compaction/closure.py",
        "if s.deletes != s.barriers]",
        "if s.deletes != 0 and not s.barriers]",
        SELECTION,
    ),
    Breakage(
        "a look at a table whose unit nobody can tell fails",
        f"{_ENGINE}/hudi_table/reports.py",
        "            if unit is None or unit.problem is None:",
        "            if True:",
        UNITS,
    ),
    Breakage(
        "the residue log forgets its tombstones",
        f"{_ENGINE}/actions/compaction/residue.py",
        "        if group not in self.spec.lowest:",
        "        if True:",
        RESIDUE,
    ),
    Breakage(
        "the exact split lets records above the threshold into the base file",
        f"{_ENGINE}/actions/compaction/residue.py",
        "pc.greater(micros, pa.scalar(self.spec.split_at * 1000, pa.int64()))",
        "pc.greater(micros, pa.scalar((self.spec.split_at + 60_000) * 1000, pa.int64()))",
        RESIDUE,
    ),
    Breakage(
        "a header says what is in the file, and not what came",
        f"{_ENGINE}/actions/writing/log_files.py",
        "        times = replace(times, low=covered.min, high=covered.max)\n",
        "        pass\n",
        BLOCK_TIMES,
    ),
    Breakage(
        "the slice that the earliest retained commit reads is cleaned",
        f"{_ENGINE}/actions/cleaning/plan.py",
        "if inventory.replaced_before(new.base_instant, earliest))",
        "if inventory.replaced_before(old.base_instant, earliest))",
        CLEAN,
    ),
    Breakage(
        "one commit too few is retained",
        f"{_ENGINE}/actions/cleaning/plan.py",
        "chosen = completed[-keep.retained] if",
        "chosen = completed[-keep.retained + 1] if",
        CLEAN,
    ),
    Breakage(
        "symbolic links whoever cleans",
        f"{_ENGINE}/actions/compaction/other_engines.py",
        '    if not config.merging.ours:\n        raise InvalidInput(f"{says}',
        '    if False:\n        raise InvalidInput(f"{says}',
        LINKS,
    ),
    Breakage(
        "symbolic links beside a writer that cleans",
        f"{_ENGINE}/actions/compaction/other_engines.py",
        "        if is_true(config.properties, key):",
        "        if False:",
        LINKS,
    ),
    Breakage(
        "the commit does not say what is carried over",
        f"{_ENGINE}/actions/compaction/executor.py",
        "        if carried_over := self._carried_over(state, plan):",
        "        if (carried_over := self._carried_over(state, plan)) and False:",
        LINKS,
    ),
    Breakage(
        "a carried-over log file's target is the link before",
        f"{_ENGINE}/actions/compaction/planning.py",
        "functools.partial(layout.carry_over, original_of=functools.partial(origin_of, state))",
        "layout.carry_over",
        LINKS,
    ),
    Breakage(
        "a rollback asks for the first originals",
        f"{_ENGINE}/actions/undo.py",
        "*(c.made_from for c in op.carried_over))",
        "*(c.target for c in op.carried_over))",
        LINKS,
    ),
    Breakage(
        "a plan whose files are gone is begun",
        f"{_ENGINE}/actions/compaction/executor.py",
        "                refuse_missing_inputs(state, plan)\n",
        "",
        LINKS,
    ),
    Breakage(
        "links are made without a guard",
        f"{_ENGINE}/transaction/publish.py",
        "        if carried and guard is not None:\n            self.publish_guard(guard, plan.instant)",
        "        if False:\n            self.publish_guard(guard, plan.instant)",
        CRASHES,
    ),
    Breakage(
        "a dead write keeps its log files",
        f"{_ENGINE}/transaction/recover.py",
        "            for path in files:\n                storage.delete(path)\n            publisher.withdraw_write",
        "            publisher.withdraw_write",
        CRASHES,
    ),
    Breakage(
        "what lost attempts wrote is looked for only where there are markers",
        f"{_ENGINE}/transaction/recover.py",
        ", *staged_instants(storage)}",
        "}",
        ATTEMPTS,
    ),
    Breakage(
        "markers of a completed instant go without the stray that they name",
        f"{_ENGINE}/transaction/recover.py",
        "for path in strays.marked(instant):",
        "for path in ():",
        ATTEMPTS,
    ),
    Breakage(
        "a clean leaves strays",
        f"{_ENGINE}/actions/cleaning/clean.py",
        "            remove_strays(tx.read(), self.table.publisher.metadata_table)\n",
        "",
        ATTEMPTS,
    ),
    Breakage(
        "a savepoint names no log file of a later slice",
        f"{_ENGINE}/actions/savepoint.py",
        "    if state.layout.cuts_by_completion:",
        "    if not state:",
        ("tests/unit/test_housekeeping_v2.py",),
    ),
    Breakage(
        "a bulk insert goes into file groups that hold rows",
        f"{_ENGINE}/actions/writing/delta_commit.py",
        "        if operation == BULK_INSERT:\n            self._check_empty",
        "        if False:\n            self._check_empty",
        LOADS,
    ),
    Breakage(
        "a bulk insert writes every row of a key",
        f"{_ENGINE}/actions/writing/bulk_insert.py",
        "if grown is None and not deletes and _differ(came.column(KEY)):",
        "if grown is None and not deletes:",
        LOADS,
    ),
    Breakage(
        "a delete among a bulk insert's rows is written as a row",
        f"{_ENGINE}/actions/writing/bulk_insert.py",
        "deletes = IS_DELETED in came.schema.names and pc.any(came.column(IS_DELETED)).as_py()",
        "deletes = False",
        LOADS,
    ),
    Breakage(
        "faulty rows are found, and written",
        f"{_ENGINE}/actions/writing/delta_commit.py",
        "for fault, rows in total.faults.items():",
        "for fault, rows in ():",
        LOADS,
    ),
    Breakage(
        "a bulk insert's base file has no marker",
        f"{_ENGINE}/actions/writing/bulk_insert.py",
        'stage(spec.instant, path, "CREATE" if grown is None else "MERGE")',
        'stage(spec.instant, path, "")',
        LOAD_CRASHES,
    ),
    Breakage(
        "parcels come in the order of Spark's shuffle",
        f"{_ENGINE}/actions/writing/parcels.py",
        "for number in sorted(streams):",
        "for number in list(streams):",
        PACKING,
    ),
    Breakage(
        "rows of a file group lose their order among each other",
        f"{_ENGINE}/actions/writing/packing.py",
        'rows.take(pa.array(np.argsort(ranks, kind="stable")))',
        "rows.take(pa.array(np.lexsort((-np.arange(len(ranks)), ranks))))",
        PACKING,
    ),
    Breakage(
        "parcels in files come in reverse",
        f"{_ENGINE}/actions/writing/exchange.py",
        "shares[homes[place.slot]].append(place)",
        "shares[homes[place.slot]].insert(0, place)",
        THROUGH_SPARK,
    ),
    Breakage(
        "a write that turned up below a plan is overlooked",
        f"{_ENGINE}/transaction/late_log_files.py",
        "if write.timestamp < plan.instant:",
        "if False:",
        PAST_INSTANTS,
    ),
    Breakage(
        "two completions of one instant both stand",
        f"{_ENGINE}/transaction/publish.py",
        "            self._alone(instant, action, path)\n",
        "            pass\n",
        PAST_INSTANTS,
    ),
    Breakage(
        "whoever changes the table does not ask for the zone",
        f"{_ENGINE}/transaction/transaction.py",
        "        state.refuse_other_zone()\n",
        "",
        ZONES,
    ),
    Breakage(
        "Hudi executes a plan in another zone than the table's",
        f"{_ENGINE}/actions/compaction/hudi_executor.py",
        "if offset_ms != zone.offset_ms(now_ms):",
        "if False:",
        ZONES,
    ),
    Breakage(
        "the pace of a burst is taken for the commits' pace",
        f"{_ENGINE}/actions/cleaning/query_grace.py",
        "span = max(len(times), now_ms - times[0])",
        "span = max(len(times), times[-1] - times[0])",
        QUERY_TIME,
    ),
    Breakage(
        "commits after a plan's instant are forgotten when the cleaner's are counted",
        f"{_ENGINE}/actions/cleaning/query_grace.py",
        "left = max(1, keep.retained - since)",
        "left = max(1, keep.retained)",
        QUERY_TIME,
    ),
    Breakage(
        "the default grace refuses plans",
        f"{_ENGINE}/actions/cleaning/query_grace.py",
        "return (_stated(properties, QUERY_GRACE, where) or 0) if least is None else least",
        "return query_grace_ms(properties, where, back_dated=True) if least is None else least",
        QUERY_TIME,
    ),
    Breakage(
        "a plan that leaves running queries too little is published all the same",
        f"{_ENGINE}/actions/compaction/planning.py",
        "                refuse_short_query_time(chosen, self.table.path)\n",
        "",
        QUERY_TIME,
    ),
    Breakage(
        "a series of compactions ends after its first plan",
        f"{_ENGINE}/actions/compaction/series.py",
        "if threshold is None or found.claims == threshold:",
        "if True:",
        SERIES,
    ),
    Breakage(
        "a series that something stops is called complete",
        f"{_ENGINE}/actions/compaction/series.py",
        "None if is_reached() else found.reason",
        "None",
        SERIES,
    ),
    Breakage(
        "the lock of a table on a store lies beside the table",
        f"{_ENGINE}/transaction/lock.py",
        'storage.local_path(f"{SCRATCH}/{name}.lock")',
        'storage.uri(f"{SCRATCH}/{name}.lock")',
        ("tests/unit/test_other_store.py",),
    ),
    Breakage(
        "a merge mode without a rule parts slices",
        f"{_ENGINE}/actions/compaction/closure.py",
        "if rule.mode not in _HAVE_RULES or any(",
        "if any(",
        CLOSURE,
    ),
    Breakage(
        "with one of Hudi's strategies the event-time trigger is always due",
        f"{_ENGINE}/actions/compaction/planning.py",
        "if isinstance(chosen, Plan) and settings.due_by_event_time and threshold is not None:",
        "if False:",
        ("tests/unit/test_planning.py",),
    ),
    Breakage(
        "a log file that the strategy takes is never old enough for the event-time trigger",
        f"{_ENGINE}/actions/compaction/triggers.py",
        "if any(time is None or time <= threshold for time in times):",
        "if any(time is None or time < threshold for time in times):",
        ("tests/unit/test_planning.py",),
    ),
    Breakage(
        "decimals without room in the column statistics are planned for",
        f"{_ENGINE}/actions/compaction/decimal_limits.py",
        "if pc.any(without_room(rows, path, kind)).as_py():",
        "if False:",
        COLUMN_STATS,
    ),
    Breakage(
        "a compaction is rolled back whose slice holds rows of a commit below it",
        f"{_ENGINE}/actions/undo.py",
        '        self._check_nothing_appended(state, compaction, "compaction", would_be_lost)\n',
        "",
        ZONES,
    ),
    Breakage(
        "a compaction that cannot be completed is merged first",
        f"{_ENGINE}/actions/compaction/executor.py",
        "                self.table.publisher.check_can_complete()\n",
        "",
        ("tests/unit/test_put_back.py",),
    ),
    Breakage(
        "a savepoint that cannot be completed is begun",
        f"{_ENGINE}/actions/savepoint.py",
        "        self.table.publisher.check_can_complete()\n",
        "",
        ("tests/unit/test_put_back.py",),
    ),
    Breakage(
        "a table without a data latency does not say how to state one",
        f"{_ENGINE}/actions/compaction/threshold.py",
        'no data latency, {asks}: {STATE_A_LATENCY}"',
        'no data latency, {asks}"',
        FIRST_CONTACT,
    ),
    Breakage(
        "a planner whose lock was taken changes hoodie.properties",
        f"{_ENGINE}/actions/compaction/planning.py",
        "                tx.check()\n",
        "",
        ("tests/unit/test_planning.py", *LOST_LOCK),
    ),
    Breakage(
        "a look takes its numbers from another reading than its plan",
        f"{_ENGINE}/hudi_table/reports.py",
        "        stats = status.stats_of(state)\n        proposal",
        "        stats = status.stats_of(self.state())\n        proposal",
        LOOKS,
    ),
    Breakage(
        "a clean asks no note of a published view",
        "hudi_assets/engine/actions/cleaning/clean.py",
        "            if not unasked:\n",
        "            if False:\n",
        NOTED_VIEWS,
    ),
    Breakage(
        "what a killed holder of a lock left of its name stays",
        f"{_ENGINE}/transaction/recover.py",
        'file.name.startswith(".") and ',
        "False and ",
        ("tests/unit/test_lock.py",),
    ),
)

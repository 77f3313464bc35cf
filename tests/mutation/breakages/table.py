"""Breakages of a table as it is read: slices, event times, settings, layout, metadata table."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ENGINE = "hudi_assets/engine"
VIEW = ("tests/unit/test_file_view.py", "tests/property/test_queries.py")
QUERIES = ("tests/property/test_queries.py",)
CLEAN = ("tests/property/test_clean_plan.py",)
LINKS = ("tests/unit/test_links.py",)
LIVES = ("tests/machine",)
PAST_INSTANTS = ("tests/unit/test_placement.py", "tests/unit/test_past_instants.py")
STATED = ("tests/unit/test_stated_settings.py",)
COLUMN_STATS = ("tests/unit/test_column_stats.py",)
METADATA = ("tests/unit/test_metadata_reader.py", "tests/unit/test_metadata_records.py")
ATTEMPTS = ("tests/crash/test_late_attempts.py", "tests/unit/test_attempts.py")
PACKING = ("tests/property/test_packing.py",)
BLOCK_TIMES = ("tests/unit/test_block_times.py",)
ZONES = ("tests/unit/test_time_zones.py",)
ARCHIVED_PAST = ("tests/unit/test_archived_past.py",)
LAYOUT = ("tests/unit/test_layout_answers.py",)
TICKS = ("tests/dagster/test_looks.py",)
NOTED_VIEWS = ("tests/catalog/test_clean_from_python.py",)
ERRORS = ("tests/unit/test_errors.py", "tests/unit/test_refusals.py")


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "a table that 0.x created is merged by 1.x's rules",
        f"{_ENGINE}/table/settings/config.py",
        "properties = {**evident_rules(own, layout), **stated}",
        "properties = stated",
        ("tests/unit/test_merge_rules.py",),
    ),
    Breakage(
        "a setting given by a reader is taken for evidence of who created the table",
        f"{_ENGINE}/table/settings/config.py",
        "properties = {**evident_rules(own, layout), **stated}",
        "properties = {**evident_rules(stated, layout), **stated}",
        ("tests/unit/test_merge_rules.py",),
    ),
    Breakage(
        "a base file without statistics has no event times",
        f"{_ENGINE}/table/files/base_times.py",
        "        if found is None or not found.has_min_max:\n            return math.inf\n",
        "        if found is None or not found.has_min_max:\n            return -math.inf\n",
        ("tests/unit/test_base_times.py",),
    ),
    Breakage(
        "base files of unfinished instants count",
        f"{_ENGINE}/table/slices/file_view.py",
        "        elif committed[file.instant]:",
        "        else:",
        VIEW,
    ),
    Breakage(
        "a pending compaction's slice hides the older one",
        f"{_ENGINE}/table/slices/file_view.py",
        "return replace(older, log_files=older.log_files + added)",
        "return newest",
        VIEW,
    ),
    Breakage(
        "what is appended beside a pending plan is not read",
        f"{_ENGINE}/table/slices/file_view.py",
        "added = tuple(log for log in newest.log_files if log.path not in carried)",
        "added = tuple(log for log in newest.log_files if log.path in carried)",
        LIVES,
    ),
    Breakage(
        "time travel shows the slice that begins just after the instant",
        f"{_ENGINE}/table/slices/history.py",
        "if s.base_instant <= t))",
        "if s.base_instant < t))",
        QUERIES,
    ),
    Breakage(
        "contents are read although the header says it",
        f"{_ENGINE}/table/log_files/summaries.py",
        "        if times is None:\n",
        "        if times is None or block.is_data:\n",
        BLOCK_TIMES,
    ),
    Breakage(
        "a delete block's content is read although its header says it",
        f"{_ENGINE}/table/log_files/summaries.py",
        "        if times is None:\n",
        "        if times is None or not block.is_data:\n",
        BLOCK_TIMES,
    ),
    Breakage(
        "an older header's minimum is passed over",
        f"{_ENGINE}/table/log_files/summaries.py",
        "if stated is None or times.low is None or stated >= times.low:",
        "if True:",
        BLOCK_TIMES,
    ),
    Breakage(
        "savepointed slices are cleaned",
        f"{_ENGINE}/table/files/needed.py",
        "wanted = inventory.savepointed | inventory.hidden",
        "wanted = inventory.hidden",
        CLEAN,
    ),
    Breakage(
        "what a pending compaction reads is cleaned",
        f"{_ENGINE}/table/files/needed.py",
        "compacting = [s for s in slices if reads is not None and s.base_instant >= reads]",
        "compacting: list[FileSlice] = []",
        CLEAN,
    ),
    Breakage(
        "only files that a commit names can be missing",
        f"{_ENGINE}/table/files/missing.py",
        "        if _is_read_now(state, file, newest):\n            yield Missing(link.path",
        "        if False:\n            yield Missing(link.path",
        LINKS,
    ),
    Breakage(
        "a link to nothing is damage in whatever slice",
        f"{_ENGINE}/table/files/missing.py",
        '    return key not in state.replaced and slice_instant >= newest.get(key, "")',
        "    return key not in state.replaced",
        LINKS,
    ),
    Breakage(
        "an older slice without its link's target is whole",
        f"{_ENGINE}/table/files/past.py",
        "            found.written.setdefault(place[:2], set()).add(link.path)",
        "            pass",
        LINKS,
    ),
    Breakage(
        "the plans of archived compactions are not asked which slice came before",
        f"{_ENGINE}/table/files/past.py",
        "plans(state.storage, wanted) if wanted else ()",
        "plans(state.storage, wanted) if not wanted else ()",
        ARCHIVED_PAST,
    ),
    Breakage(
        "a slice whose commits are archived is whole without a log file that its compaction found",
        f"{_ENGINE}/table/files/past.py",
        "            self.written.setdefault((key, op.base_instant), set()).update(read)\n",
        "",
        ARCHIVED_PAST,
    ),
    Breakage(
        "an archived plan does not tell of log files that were requested before their slice",
        f"{_ENGINE}/table/files/past.py",
        "                self._add_across(state, op)\n",
        "",
        ARCHIVED_PAST,
    ),
    Breakage(
        "a log file of another engine's delta commit is taken for a stray",
        f"{_ENGINE}/table/files/strays.py",
        "one.action is Action.DELTA_COMMIT and self._is_ours(one)",
        "one.action is Action.DELTA_COMMIT",
        ATTEMPTS,
    ),
    Breakage(
        "a stray that a pending plan reads is removed",
        f"{_ENGINE}/table/files/strays.py",
        "return (file for file in files if file.path not in self._listed and file.path not in self._read_by_plans)",
        "return (file for file in files if file.path not in self._listed)",
        ATTEMPTS,
    ),
    Breakage(
        "of several base files of an archived commit the youngest counts",
        f"{_ENGINE}/table/state.py",
        "return base.path == min(",
        "return base.path == max(",
        ATTEMPTS,
    ),
    Breakage(
        "a base file has column statistics of its keys alone",
        f"{_ENGINE}/table/metadata/column_stats.py",
        "return column in self._definition.columns",
        'return column == "_hoodie_record_key"',
        COLUMN_STATS,
    ),
    Breakage(
        "the metadata table's own compaction leaves column statistics behind",
        f"{_ENGINE}/table/metadata/compaction.py",
        "        used = COLUMN_STATS in named(table_properties(self.storage).get(COMPLETED))",
        "        used = False",
        COLUMN_STATS,
    ),
    Breakage(
        "a write that an index of records has merged is rolled back",
        f"{_ENGINE}/table/metadata/policy.py",
        "if written and (not delta or own.has_merged(delta[0])):",
        "if written and not delta:",
        ("tests/unit/test_metadata_writer.py",),
    ),
    Breakage(
        "what belongs to a pending instant of the data table counts",
        f"{_ENGINE}/table/metadata/reader.py",
        "return self.is_committed(timestamp) and timestamp not in self._pending",
        "return self.is_committed(timestamp)",
        METADATA,
    ),
    Breakage(
        "a rollback block of the metadata table is passed over",
        f"{_ENGINE}/table/metadata/reader.py",
        "found = [pair for pair in found if pair[0] != block.target_instant_time]",
        "pass",
        METADATA,
    ),
    Breakage(
        "a tombstone in a log leaves nothing where the base file has the name",
        f"{_ENGINE}/table/metadata/records.py",
        "        if known is None:\n            files[name] = file",
        "        if known is None:\n            if not file.deleted:\n                files[name] = file",
        METADATA,
    ),
    Breakage(
        "archived log files of an older slice are read into the newest one",
        f"{_ENGINE}/table/metadata/slices.py",
        "completions.get(instant) or (instant if _is_archived(instant, own) else None)",
        "completions.get(instant)",
        METADATA,
    ),
    Breakage(
        "a character beyond the first plane is one unit to the hash of a key",
        f"{_ENGINE}/table/record_keys.py",
        "units = ((data & 0xC0) != 0x80).astype(np.int64) + (data >= 0xF0)",
        "units = ((data & 0xC0) != 0x80).astype(np.int64)",
        PACKING,
    ),
    Breakage(
        "a log file requested below the plan's instant, and completed above it, is kept",
        f"{_ENGINE}/table/layout/placement.py",
        "log.base_instant <= instant and completion > low",
        "False",
        PAST_INSTANTS,
    ),
    Breakage(
        "a plan may stand before the active timeline's start",
        f"{_ENGINE}/table/layout/placement.py",
        "max([self.floor, slice_.base_instant",
        "max([slice_.base_instant",
        PAST_INSTANTS,
    ),
    Breakage(
        "a plan may stand above an unfinished write",
        f"{_ENGINE}/table/layout/placement.py",
        "return self.ceiling is None or self._free(low) < self.ceiling",
        "return True",
        PAST_INSTANTS,
    ),
    Breakage(
        "versions of carried-over log files begin anew",
        f"{_ENGINE}/table/layout/v6.py",
        "enumerate(remaining, start=slice_.next_log_version)",
        "enumerate(remaining, start=2)",
        ("tests/unit/test_file_view.py",),
    ),
    Breakage(
        "the zone of the process counts, whatever the table's files say",
        f"{_ENGINE}/table/zone_check.py",
        "if verdict.finding is Finding.DISAGREES and not _writers_are_ahead_of_utc(config, verdict):",
        "if False:",
        ZONES,
    ),
    Breakage(
        "where nothing speaks for the process's zone, it counts",
        f"{_ENGINE}/table/zone_check.py",
        "if config.timezone != LOCAL or verdict.finding is Finding.AGREES:",
        "if True:",
        ZONES,
    ),
    Breakage(
        "a key that is not followed is passed over",
        f"{_ENGINE}/table/settings/stated.py",
        "if undone is not None and value.strip().lower() != undone.same:",
        "if False:",
        STATED,
    ),
    Breakage(
        "the cleaner's keys are known by their older names alone",
        f"{_ENGINE}/table/settings/stated.py",
        "return {**settings, **renamed}",
        "return dict(settings)",
        STATED,
    ),
    Breakage(
        "a writer's option may contradict the table",
        f"{_ENGINE}/table/settings/stated.py",
        "if stated is not None and _listed(stated) != _listed(value):",
        "if False:",
        STATED,
    ),
    Breakage(
        "a table without a first commit is called damaged",
        f"{_ENGINE}/table/state.py",
        '            raise Conflict(\n                "The table has no schema yet',
        '            raise CorruptTable(\n                "The table has no schema yet',
        ("tests/unit/test_refusals.py",),
    ),
    Breakage(
        "a log file of an unfinished write may not vanish under a query",
        f"{_ENGINE}/table/log_files/reader.py",
        "if path not in committed.unfinished:",
        "if True:",
        ("tests/crash/test_reading_beside_rollback.py",),
    ),
    Breakage(
        "a log file of a commit may vanish under a query",
        f"{_ENGINE}/table/log_files/reader.py",
        "if path not in committed.unfinished:",
        "if False:",
        ("tests/crash/test_reading_beside_rollback.py",),
    ),
    Breakage(
        "a file of the timeline that goes after it was listed is an error of the machine's",
        f"{_ENGINE}/table/state.py",
        "        except FileNotFoundError as error:\n            raise Conflict(",
        "        except ZeroDivisionError as error:\n            raise Conflict(",
        ("tests/unit/test_timeline_in_motion.py",),
    ),
    Breakage(
        "tables of other key generators are written",
        f"{_ENGINE}/table/settings/key_generators.py",
        "return generator in (NONPARTITIONED, SIMPLE, COMPLEX)",
        "return True",
        ("tests/unit/test_refusals.py",),
    ),
    Breakage(
        "a plan of version 6 is made while a write is unfinished",
        f"{_ENGINE}/table/layout/v6.py",
        "plans_beside_writes: bool = False",
        "plans_beside_writes: bool = True",
        ("tests/unit/test_beside_writes.py",),
    ),
    Breakage(
        "nobody has to say how other engines write a table of version 6",
        f"{_ENGINE}/table/layout/v6.py",
        "needs_stated_writers: bool = True",
        "needs_stated_writers: bool = False",
        ("tests/unit/test_beside_writes.py",),
    ),
    Breakage(
        "a delta commit of the metadata table counts only with an instant of the data table",
        f"{_ENGINE}/table/layout/v6.py",
        'return f"{instant}{_AT_ONCE}"',
        "return instant",
        LAYOUT,
    ),
    Breakage(
        "the metadata table of version 8 is compacted while what it folds is pending",
        f"{_ENGINE}/table/layout/v8.py",
        "return not any(instant in pending for instant in deltas)",
        "return True",
        LAYOUT,
    ),
    Breakage(
        "the metadata table of version 8 is compacted beside another engine",
        f"{_ENGINE}/table/layout/v8.py",
        "metadata_has_other_writers: bool = True",
        "metadata_has_other_writers: bool = False",
        ("tests/unit/test_metadata_writer.py",),
    ),
    Breakage(
        "a view of which nobody knows the files is taken for a true one",
        "hudi_assets/engine/table/files/published.py",
        "if digests != now)",
        "if digests not in (now, None))",
        NOTED_VIEWS,
    ),
    Breakage(
        "a note that cannot be compared is none",
        "hudi_assets/engine/table/files/published.py",
        "    now = [view_digest(state)] if noted else []\n",
        "    with suppress(ValueError):\n        now = [view_digest(state)] if noted else []\n"
        "        return ((view, note) for view, note, digests in noted if digests != now)\n    noted, now = [], []\n",
        NOTED_VIEWS,
    ),
    Breakage(
        "a note that is deleted meanwhile stops a clean",
        "hudi_assets/engine/table/files/published.py",
        "AttributeError, FileNotFoundError)",
        "AttributeError)",
        NOTED_VIEWS,
    ),
    Breakage(
        "a table without a commit is not looked at",
        "hudi_assets/engine/table/files/published.py",
        "    except HudiAssetsError:  # as ",
        "    except KeyError:  # as ",
        TICKS,
    ),
    Breakage(
        "an error about a log file does not name the table",
        f"{_ENGINE}/table/log_files/headers.py",
        '    with located(f"{storage.base}: {path}"):\n',
        "    with located(path):\n",
        ERRORS,
    ),
    Breakage(
        "an error about a file of a listing does not name the table",
        f"{_ENGINE}/table/state.py",
        ", in_table(self.storage.base):\n",
        ":\n",
        ERRORS,
    ),
)

"""Breakages of the look at tables that are not merged here, and of plans that Hudi executes for them."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ACTIONS = "hudi_assets/engine/actions/compaction"
_TABLE = "hudi_assets/engine/table"
LOOKS = ("tests/unit/test_any_table.py",)
STATED = ("tests/unit/test_stated_merge_mode.py",)

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "our queries of log files merge by rules that are not the table's",
        "hudi_assets/engine/queries/query.py",
        "    mode = config.merge_mode(state.storage.base)\n",
        "    mode = config.merging.mode\n",
        LOOKS,
    ),
    Breakage(
        "our writer writes tables whose rules it does not know",
        "hudi_assets/engine/actions/writing/delta_commit.py",
        "        config.refuse_merge(where)\n        if config.keeps_changes:",
        "        if config.keeps_changes:",
        LOOKS,
    ),
    Breakage(
        "our writer writes rows without a key",
        "hudi_assets/engine/actions/writing/delta_commit.py",
        "        if not config.record_key:\n",
        "        if False:\n",
        LOOKS,
    ),
    Breakage(
        "a look shows a plan as due that would make the metadata table untrue",
        f"{_ACTIONS}/who_executes.py",
        "        _refuse_log_files(state, plan)\n    made_untrue(state, plan)\n",
        "        _refuse_log_files(state, plan)\n",
        ("tests/unit/test_metadata_writer.py",),
    ),
    Breakage(
        "a plan is published that the native executor refuses",
        f"{_ACTIONS}/planning.py",
        "                refuse_execution(state, chosen)\n",
        "",
        LOOKS,
    ),
    Breakage(
        "the sensor is told of a plan that would be refused",
        f"{_ACTIONS}/who_executes.py",
        "    except UnsupportedTable as refused:\n        return NoPlan(str(refused))\n",
        "    except UnsupportedTable:\n        return plan\n",
        LOOKS,
    ),
    Breakage(
        "log compactions are planned for the native executor",
        f"{_ACTIONS}/who_executes.py",
        "        _refuse_log_files(state, plan)\n",
        "        pass\n",
        LOOKS,
    ),
    Breakage(
        "the native executor executes a plan that is Hudi's to execute",
        f"{_ACTIONS}/executor.py",
        '        self.table.config.refuse_merge(f"{self.table.path} {instant}")\n',
        "",
        LOOKS,
    ),
    Breakage(
        "a slice with what is not merged is parted",
        f"{_ACTIONS}/closure.py",
        "    if rule.mode not in _HAVE_RULES or any(s.not_merged or s.partial for s in known):",
        "    if rule.mode not in _HAVE_RULES or any(s.partial for s in known):",
        LOOKS,
    ),
    Breakage(
        "a plan of version 6 for Hudi carries log files over",
        f"{_ACTIONS}/planning.py",
        "            merging.mode if parts else None,\n",
        "            merging.mode,\n",
        LOOKS,
    ),
    Breakage(
        "Hudi is given any plan of version 6",
        f"{_ACTIONS}/hudi_executor.py",
        "    if not layout.hudi_executes_plans and (carries or config.merging.not_merged is None):",
        "    if not layout.hudi_executes_plans and carries:",
        LOOKS,
    ),
    Breakage(
        "a table of other files is changed",
        "hudi_assets/engine/transaction/open_table.py",
        "        self.config.refuse_other_files(self.path)\n",
        "",
        LOOKS,
    ),
    Breakage(
        "deletes that a marker tells are taken for no deletes",
        f"{_TABLE}/settings/merging.py",
        "    if other is not None:\n        return None, ordering, other\n",
        "",
        STATED,
    ),
    Breakage(
        "a record without event time in a partial update counts for nothing",
        f"{_TABLE}/log_files/reader.py",
        "            asked = [field.with_nullable(True) for field in schema if field.name in columns]\n",
        "            asked = [field.with_nullable(True) for field in schema if field.name in names]\n",
        LOOKS,
    ),
    Breakage(
        "what is not merged is forgotten with the first look",
        "hudi_assets/engine/model/log_summary.py",
        "    return values[:-1] if summary.not_merged is not None else values[:-2]\n",
        "    return values[:-2]\n",
        LOOKS,
    ),
    Breakage(
        "change data is taken for files that nobody knows",
        "hudi_assets/engine/validate.py",
        "                or holds_changes(name)\n",
        "",
        ("tests/unit/test_refusals.py",),
    ),
    Breakage(
        "a delete with several ordering values counts at its commit",
        "hudi_assets/engine/event_time/commit_bound.py",
        "deletes_count_at_commit and not self._has_other_event_times",
        "deletes_count_at_commit",
        LOOKS,
    ),
    Breakage(
        "a catalog is told of base files that lack their data",
        "hudi_assets/engine/hudi_table/reports.py",
        "        self.config.refuse_other_files(self.path)\n        state = self._readable()\n",
        "        state = self._readable()\n",
        LOOKS,
    ),
    Breakage(
        "files of change data outlive their slice",
        "hudi_assets/engine/table/files/cleaned.py",
        "            if (beside := slice_of_changes(file.name)) is not None:\n",
        "            if (beside := None) is not None:\n",
        LOOKS,
    ),
    Breakage(
        "our writer writes a table with change data",
        "hudi_assets/engine/actions/writing/delta_commit.py",
        "        if config.keeps_changes:\n",
        "        if False:\n",
        LOOKS,
    ),
    Breakage(
        "on version 6 a log file that is not merged is left to Hudi, which is not given the plan",
        f"{_ACTIONS}/who_executes.py",
        "    hint = LET_HUDI if state.layout.hudi_executes_plans else LOOK_ALONE\n",
        "    hint = LET_HUDI\n",
        LOOKS,
    ),
)

"""Breakages of blocks, metrics and reports."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ENGINE = "hudi_assets/engine"
LOST_LOCK = ("tests/unit/test_lost_lock.py",)
METRICS = ("tests/cli/test_metrics.py",)


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "Dagster is started on a port that is taken",
        "hudi_assets/demo/ui.py",
        "            probe.bind((HOST, int(text)))\n",
        "            pass\n",
        ("tests/unit/test_ui_port.py::test_a_port_that_is_taken",),
    ),
    Breakage(
        "dg lists the component under another name than blocks have",
        "pyproject.toml",
        'hudi_assets = "hudi_assets.components"',
        'hudi_assets = "hudi_assets.components.hudi_table"',
        ("tests/unit/test_component_name.py::test_dg_lists_it_under_the_name_that_blocks_have",),
    ),
    Breakage(
        "dg stops in an environment that lacks the extra for Dagster",
        "hudi_assets/components/__init__.py",
        "if all(map(find_spec, _NEEDS)):",
        "if True:",
        ("tests/unit/test_component_name.py::test_without_dagster_there_is_none_and_its_import_says_what_to_install",),
    ),
    Breakage(
        "the first red suite ends make test",
        "Makefile",
        '$$suite || failed="$$failed $$suite"; \\\n',
        "$$suite || exit 1; \\\n",
        ("tests/unit/test_make.py::test_one_red_suite_does_not_hide_the_next",),
    ),
    Breakage(
        "examples are other ones in each run",
        "tests/examples.py",
        "derandomize=name == FIXED",
        "derandomize=False",
        ("tests/unit/test_examples.py::test_examples_do_not_depend_on_what_is_imported",),
    ),
    Breakage(
        "fixed examples depend on what is imported",
        "tests/examples.py",
        "return _of_imported_modules() if random else _NONE",
        "return _of_imported_modules()",
        ("tests/unit/test_examples.py::test_examples_do_not_depend_on_what_is_imported",),
    ),
    *(
        Breakage(what, f"{_ENGINE}/actions/{file}", old, new, LOST_LOCK)
        for what, file, old, new in (
            (
                "a write is completed without its lock",
                "writing/delta_commit.py",
                '        tx.check()\n        if self.table.config.writers == "locked":\n',
                '        if self.table.config.writers == "locked":\n',
            ),
            (
                "an execution begins without its lock",
                "compaction/executor.py",
                "                tx.check()\n                switch_off(",
                "                switch_off(",
            ),
            (
                "an execution is completed without its lock",
                "compaction/executor.py",
                "            executing.check()\n            tx.check()\n",
                "            executing.check()\n",
            ),
            ("a clean is published without its lock", "cleaning/clean.py", "            tx.check()\n", ""),
            ("instants are archived without the lock", "archiving/archive.py", "            tx.check()\n", ""),
            (
                "a savepoint is made without the lock",
                "savepoint.py",
                "            tx.check()\n            self._publish(",
                "            self._publish(",
            ),
            (
                "a savepoint is deleted without the lock",
                "savepoint.py",
                "            tx.check()\n            # The inflight",
                "            # The inflight",
            ),
            (
                "a rollback is published without its lock",
                "undo.py",
                "            tx.check()\n            switch_off(self.table.storage, untrue)\n            return self.",
                "            switch_off(self.table.storage, untrue)\n            return self.",
            ),
            (
                "a plan is withdrawn without the lock",
                "undo.py",
                "            tx.check()\n            if target.state",
                "            if target.state",
            ),
            (
                "a restore is published without its lock",
                "undo.py",
                "            tx.check()\n            switch_off(self.table.storage, untrue)\n            return exec",
                "            switch_off(self.table.storage, untrue)\n            return exec",
            ),
        )
    ),
    Breakage(
        "an SLO that can never be kept is taken",
        "hudi_assets/components/hudi_table.py",
        "        if least > parse_latency(self.freshness_slo):\n",
        "        if False:\n",
        ("tests/dagster/test_limits.py::test_an_slo_that_can_never_be_kept_is_refused",),
    ),
    Breakage(
        "a section that cannot be told takes the whole page with it",
        "hudi_assets/reporting/page.py",
        "    except (HudiAssetsError, ValueError, ArithmeticError) as problem:\n",
        "    except KeyError as problem:\n",
        ("tests/cli/test_report_page.py::test_what_cannot_be_told_is_said_in_its_section",),
    ),
    Breakage(
        "late rows end make run as failed checks",
        "hudi_assets/demo/shown.py",
        " if not failed.startswith(LATE_CHECK)}",
        "}",
        ("tests/unit/test_demo_shown.py::test_late_rows_are_no_failure",),
    ),
    Breakage(
        "the numbers of a table that breaks stand still",
        "hudi_assets/monitoring/watch.py",
        "        metrics, problem = None, None\n",
        "        metrics, problem = last.metrics if last else None, None\n",
        METRICS,
    ),
    Breakage(
        "an unexpected error of one table ends the looks at all others",
        "hudi_assets/monitoring/watch.py",
        "        except Exception as error:\n            problem = _in_words(error, table.path)\n",
        "        except ArithmeticError as error:\n            problem = _in_words(error, table.path)\n",
        ("tests/cli/test_metrics.py::test_a_table_that_is_not_there_stops_no_other_and_is_told_on_stderr",),
    ),
    Breakage(
        "a lag is no alert where it is beyond the SLO",
        "hudi_assets/monitoring/alerts.yml",
        "hudi_assets_freshness_lag_seconds > hudi_assets_freshness_slo_seconds",
        "hudi_assets_freshness_lag_seconds > 2 * hudi_assets_freshness_slo_seconds",
        ("tests/cli/test_prometheus.py::test_each_alert_fires_in_its_case_and_not_before",),
    ),
    Breakage(
        "numbers stand still while a look hangs",
        "hudi_assets/monitoring/watch.py",
        "replace(one, metrics=None) if one.metrics is not None and self._is_old(one.looked_at) else one",
        "one",
        ("tests/cli/test_metrics.py::test_numbers_of_a_look_that_is_long_ago_vanish",),
    ),
    Breakage(
        "two paths of one table make two series of it",
        "hudi_assets/monitoring/tables.py",
        'return path if "://" in path else os.path.abspath(path)',
        "return path",
        ("tests/cli/test_metrics.py::test_tables_come_from_a_file_each_with_its_own_slo",),
    ),
    Breakage(
        "a partition's name with dollar signs is read as a formula",
        "hudi_assets/reporting/pictures.py",
        "    axes.set_yticks(centres, names, fontsize=8, parse_math=False)",
        "    axes.set_yticks(centres, names, fontsize=8)",
        ("tests/unit/test_pictures.py::test_a_name_with_dollar_signs_is_no_formula",),
    ),
    Breakage(
        "a picture that cannot be drawn costs the whole page",
        "hudi_assets/reporting/page.py",
        "    except (HudiAssetsError, ValueError, ArithmeticError) as problem:\n",
        "    except HudiAssetsError as problem:\n",
        ("tests/unit/test_pictures.py::test_what_cannot_be_drawn_costs_its_own_section",),
    ),
    Breakage(
        "a damaged old commit costs the first section of the page",
        "hudi_assets/reporting/page.py",
        "        with suppress(HudiAssetsError):  # the section on lateness says why\n",
        "        with suppress(KeyError):\n",
        ("tests/unit/test_pictures.py::test_a_reading_that_fails_costs_only_its_sections",),
    ),
    Breakage(
        "each table of many is a resource of its own",
        "hudi_assets/components/hudi_tables.py",
        "names).parts(context, key)",
        "names).parts(context)",
        ("tests/dagster/test_many_tables.py::test_all_tables_are_one_resource_which_runs_find_their_table_in",),
    ),
    Breakage(
        "the end of a replay takes the place in an error for a style",
        "hudi_assets/demo/replay.py",
        'console.print(str(problem), style="red", soft_wrap=True, highlight=False, markup=False)',
        'console.print(str(problem), style="red", soft_wrap=True, highlight=False)',
        ("tests/unit/test_demo_shown.py::test_an_error_is_shown_with_its_place",),
    ),
    Breakage(
        "what make run shows of a failed check takes a place for a style",
        "hudi_assets/demo/shown.py",
        "soft_wrap=True, highlight=False, markup=False)",
        "soft_wrap=True, highlight=False)",
        ("tests/unit/test_demo_shown.py::test_a_place_in_brackets_is_shown",),
    ),
    Breakage(
        "a run that succeeded does not end a row of failures",
        "hudi_assets/monitoring/runs.py",
        'len(list(takewhile(lambda run: run["status"] != "SUCCESS", runs)))',
        "len(failed)",
        ("tests/cli/test_metrics_of_runs.py::test_failures_in_a_row_are_counted_by_table",),
    ),
    Breakage(
        "what Dagster told of runs stands still while a look hangs",
        "hudi_assets/monitoring/watch.py",
        "return None if self._is_old(asked_at) else seen.get(one.in_dagster)",
        "return seen.get(one.in_dagster)",
        ("tests/cli/test_metrics_of_runs.py::test_what_was_told_vanishes_and_comes_back",),
    ),
    Breakage(
        "a table of which Dagster knows no runs looks healthy",
        "hudi_assets/monitoring/runs.py",
        "RunsSeen(in_a_row if runs else None, ",
        "RunsSeen(in_a_row, ",
        ("tests/cli/test_metrics_of_runs.py::test_failures_in_a_row_are_counted_by_table",),
    ),
    Breakage(
        "half an answer of Dagster ends the exporter",
        "hudi_assets/monitoring/runs.py",
        "except (OSError, ValueError, HTTPException) as error:",
        "except (OSError, ValueError) as error:",
        ("tests/cli/test_metrics_of_runs.py::test_a_broken_answer_ends_nothing",),
    ),
    Breakage(
        "the password in an address is printed",
        "hudi_assets/monitoring/runs.py",
        '    if "@" in url:',
        '    if "@" in url[:0]:',
        ("tests/cli/test_metrics_of_runs.py::test_a_password_in_the_address_is_refused_and_not_printed",),
    ),
    Breakage(
        "an unexpected error in asking Dagster ends the looks at tables",
        "hudi_assets/monitoring/watch.py",
        '        except Exception as error:\n            problem = _in_words(error, "Dagster\'s runs")\n',
        '        except OSError as error:\n            problem = _in_words(error, "Dagster\'s runs")\n',
        ("tests/cli/test_metrics_of_runs.py::test_a_dagster_that_does_not_answer_stops_no_table",),
    ),
)

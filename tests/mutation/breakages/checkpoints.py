"""Breakages of what is kept for Hudi's streaming writers."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ARCHIVING = "hudi_assets/engine/actions/archiving"
_TESTS = "tests/unit/test_archive_checkpoints.py"

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "an archiving takes the checkpoint of Hudi Streamer",
        f"{_ARCHIVING}/archive.py",
        "checkpoints=last_checkpoints(state)",
        "checkpoints={}",
        (f"{_TESTS}::test_the_streamers_last_checkpoint_stays",),
    ),
    Breakage(
        "the start of the timeline passes a checkpoint",
        f"{_ARCHIVING}/plan.py",
        "    for instant, whose in sorted(bounds.checkpoints.items()):\n",
        "    for instant, whose in sorted(bounds.uncommitted and bounds.checkpoints.items()):\n",
        (f"{_TESTS}::test_the_plan_archives_up_to_the_checkpoint",),
    ),
    Breakage(
        "the oldest checkpoint holds all archiving back",
        f"{_ARCHIVING}/checkpoints.py",
        "    for instant in reversed(state.timeline.completed(*WRITES)):\n",
        "    for instant in state.timeline.completed(*WRITES):\n",
        (f"{_TESTS}::test_a_newer_checkpoint_lets_the_older_ones_go",),
    ),
    Breakage(
        "a compaction's checkpoint stands for the delta commit's, which the streamer needs",
        f"{_ARCHIVING}/checkpoints.py",
        "            if (whose, instant.action) not in seen:\n",
        "            if whose not in {one for one, _ in seen}:\n",
        (f"{_TESTS}::test_the_streamer_passes_over_a_compaction_that_has_its_checkpoint",),
    ),
    Breakage(
        "one query of the sink stands for all",
        f"{_ARCHIVING}/checkpoints.py",
        '            yield f"Spark\'s streaming sink {name}".rstrip()\n',
        '            yield "Spark\'s streaming sink"\n',
        (f"{_TESTS}::test_each_query_of_the_sink_has_a_checkpoint_of_its_own",),
    ),
    Breakage(
        "an archiving stops at what is no checkpoint of the sink's",
        f"{_ARCHIVING}/checkpoints.py",
        "    except ValueError:\n        return",
        "    except KeyError:\n        return",
        (f"{_TESTS}::test_what_cannot_be_read_as_the_sinks_is_kept_all_the_same",),
    ),
    Breakage(
        "a stream that has ended holds archiving back for ever",
        f"{_ARCHIVING}/checkpoints.py",
        "    if is_true(state.config.properties, ARCHIVE_BEYOND_CHECKPOINT):\n",
        "    if False:\n",
        (f"{_TESTS}::test_the_owner_lets_a_stream_that_has_ended_go",),
    ),
    Breakage(
        "an empty key counts as a checkpoint",
        f"{_ARCHIVING}/checkpoints.py",
        "any(extra.get(key) for key in _STREAMER)",
        "any(key in extra for key in _STREAMER)",
        (f"{_TESTS}::test_an_empty_key_is_no_checkpoint",),
    ),
)

"""The asset `housekeeping`: after a compaction, clean and archive, where the table's settings say so.

A step of its own: when it fails, its run shows it, and the freshness stands as it was published.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dagster import AssetExecutionContext, AssetsDefinition, Config, MaterializeResult, asset

from hudi_assets.catalog.follow import publish_and_clean
from hudi_assets.dagster import report
from hudi_assets.dagster.assets import TableAssets, observe, tag_run
from hudi_assets.engine import Conflict, HudiAssetsError, InvalidInput, NothingToDo

if TYPE_CHECKING:
    from hudi_assets.engine import HudiTable

CLEAN = "hoodie.clean.automatic"
ARCHIVE = "hoodie.archive.automatic"
_PUT_OFF = "put off: "


class HousekeepingConfig(Config):
    """For the Launchpad. Left out: as the table's settings say."""

    clean: bool | None = None
    archive: bool | None = None


def is_automatic(properties: Mapping[str, str], key: str, *, default: bool) -> bool:
    """Hudi's setting. Raises `InvalidInput` for anything but true and false."""
    text = (properties.get(key) or str(default)).strip().lower()
    if text not in ("true", "false"):
        raise InvalidInput(f"{key} is {properties[key]!r}.", hint="It may be: true, false.")
    return text == "true"


def housekeeping_asset(table: TableAssets) -> AssetsDefinition:
    """`housekeeping`: what dead processes left is mended, then the table is cleaned and its timeline archived.

    It comes after `ro_snapshot` too: while a blocking check of that fails, nothing of the table is deleted.
    """

    @asset(
        key=table.key("housekeeping"),
        deps=[table.key("ro_snapshot"), table.key("freshness")],
        output_required=False,
        description=(
            "File slices that no retained view reads are deleted, and old instants archived, after a "
            f"compaction ({CLEAN}, {ARCHIVE})."
        ),
        required_resource_keys={table.resource_key},
        pool=table.pool,
        kinds={"hudi"},
        **table.labels,
    )
    def housekeeping(context: AssetExecutionContext, config: HousekeepingConfig) -> Iterator[MaterializeResult]:  # type: ignore[type-arg]
        tag_run(context, table)
        hudi = table.open(context)
        wanted = {
            "clean": _wanted(hudi, CLEAN, config.clean, table.external),
            "archive": _wanted(hudi, ARCHIVE, config.archive, table.external),
        }
        recovered = hudi.recover()
        for sentence in recovered:
            context.log.warning(sentence)
        if not recovered and not any(wanted.values()):
            observe(context, f"Nothing was to be done: {CLEAN} and {ARCHIVE} are off.", {})
            return
        metadata, errors = _keep_house(hudi, wanted)
        for name, what in metadata.items():
            if str(what).startswith(_PUT_OFF):
                context.log.warning(f"{name} was {what}")
        yield MaterializeResult(metadata=report.recovery_metadata(recovered) | metadata)
        if errors:
            raise errors[0]

    return housekeeping


def _wanted(hudi: "HudiTable", key: str, asked: bool | None, external: bool) -> bool:
    """Tables that others write are cleaned and archived by their own writers, unless the owner says otherwise."""
    return is_automatic(hudi.config.properties, key, default=not external) if asked is None else asked


def _keep_house(hudi: "HudiTable", wanted: Mapping[str, bool]) -> tuple[dict[str, Any], list[HudiAssetsError]]:
    """Metadata of what was done, and what failed: one that fails does not keep the other from being done."""
    metadata: dict[str, Any] = {}
    errors: list[HudiAssetsError] = []
    steps: dict[str, Callable[[], Any]] = {"clean": hudi.clean, "archive": hudi.archive}
    for name, step in steps.items():
        if not wanted[name]:
            metadata[name] = "off"
            continue
        try:
            done = publish_and_clean(hudi, step) if name == "clean" else step()
        except Conflict as conflict:
            # Somebody else is at work on the table: the next compaction brings another chance.
            metadata[name] = f"{_PUT_OFF}{conflict}"
        except HudiAssetsError as error:
            metadata[name] = f"failed: {error}"
            errors.append(error)
        else:
            if isinstance(done, NothingToDo):
                metadata[name] = f"nothing to do: {done.reason}"
            else:
                metadata |= report.clean_metadata(done) if name == "clean" else report.archive_metadata(done)
    return metadata, errors

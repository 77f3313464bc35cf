"""Hudi's synced tables in AWS Glue: the freshness becomes their property, and nothing else of them changes."""

from __future__ import annotations

import json
import shutil
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError

from hudi_assets import cli
from hudi_assets.catalog import glue as glue_module
from hudi_assets.catalog.follow import after_change, follow
from hudi_assets.catalog.places import Found, Place, found_together, notes_of
from hudi_assets.catalog.publication import PREFIX, PUBLICATION
from hudi_assets.catalog.publishing import Form, Names
from hudi_assets.catalog.views import PARQUET
from hudi_assets.engine import (
    PUBLISH_PARTITIONS,
    Conflict,
    EnvironmentProblem,
    HudiAssetsError,
    HudiTable,
    InvalidInput,
)
from hudi_assets.resources import Catalog
from tests.catalog.glue_server import ACCOUNT, KEY, SECRET, TOKEN, URI, Glue, glue, glue_server, others, synced_table
from tests.catalog.tables import HOUR, compacted, make_table, row, write
from tests.tables.local_session import LocalSession, install

__all__ = ["glue", "glue_server"]
NAMES = Names("lake", "t_ro", "t_rt", Form.SYNCED)
PLACE = Place(URI, NAMES)
# What a program gives that boto3 asks for credentials.
OLD = {
    "Version": 1,
    "AccessKeyId": KEY,
    "SecretAccessKey": SECRET,
    "SessionToken": TOKEN,
    "Expiration": "2020-01-01T00:00:00Z",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compacted table, for all tests to copy."""
    with pytest.MonkeyPatch.context() as patch:
        table = make_table(tmp_path_factory.mktemp("made") / "t", clock="commit")
        compacted(table, install(patch.setattr), 1)
    return Path(table.path)


@pytest.fixture
def table(tmp_path: Path, made: Path, glue: Glue) -> HudiTable:
    """Compacted, and synced as `lake.t_ro` and `lake.t_rt`."""
    table = HudiTable.open(str(shutil.copytree(made, tmp_path / "t")))
    for name in ("t_ro", "t_rt"):
        glue.client.create_table(DatabaseName="lake", TableInput=synced_table(name, f"file:{table.path}"))
    glue.asked.clear()
    return table


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["hudi-assets", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


# -- what is set, and what is not


def test_the_freshness_becomes_a_property_and_all_else_stays(table: HudiTable, glue: Glue) -> None:
    before = {name: others(glue.table(name)) for name in ("t_ro", "t_rt")}
    said = PLACE.publish(table)
    assert said["hudi_assets.freshness_ms"] == str(table.freshness().freshness)
    for name, was in before.items():
        found = glue.table(name)
        assert others(found) == was
        assert {k: v for k, v in found["Parameters"].items() if k.startswith(PREFIX)} == said


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_every_field_that_glue_takes_is_sent_back(
    table: HudiTable, glue: Glue, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a table that somebody has tended by hand too. Times are the same moments in any zone of the publisher's."""
    more = {
        "Description": "payments, as Hudi syncs them",
        "Owner": "lake-team",
        "Retention": 7,
        "ViewOriginalText": "",
        "ViewExpandedText": "",
        "TargetTable": {"CatalogId": ACCOUNT, "DatabaseName": "lake", "Name": "t_ro"},
    }
    tended = synced_table("t_ro", f"file:{table.path}", **more)
    tended["StorageDescriptor"] |= {
        "Compressed": True,
        "NumberOfBuckets": 3,
        "BucketColumns": ["id"],
        "SortColumns": [{"Column": "id", "SortOrder": 1}],
        "Parameters": {"classification": "parquet"},
        "SkewedInfo": {"SkewedColumnNames": ["id"], "SkewedColumnValues": ["1"]},
        "StoredAsSubDirectories": False,
        "SchemaReference": {"SchemaVersionNumber": 1},
        "AdditionalLocations": ["s3://lake/more"],
    }
    glue.client.update_table(DatabaseName="lake", TableInput=tended)
    before = others(glue.table("t_ro"))
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        PLACE.publish(table)
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    assert others(glue.table("t_ro")) == before
    # And this test knows each field that there is, or the new one has to be looked at.
    known = glue.client.meta.service_model.operation_model("UpdateTable").input_shape.members["TableInput"].members
    assert set(known) - set(tended) == {"FederatedTable", "ViewDefinition"}
    assert set(known["StorageDescriptor"].members) - set(tended["StorageDescriptor"]) == set()


def test_it_is_for_the_version_that_was_read_and_archives_none(table: HudiTable, glue: Glue) -> None:
    PLACE.publish(table)
    assert [(said["VersionId"], said["SkipArchive"]) for said in glue.updates()] == [("1", True), ("1", True)]
    # docs/how-to/catalog.md says how many calls that are. The first time there is one more, before the place is noted.
    assert len(glue.asked) == 8


def test_nothing_is_updated_where_nothing_has_changed(table: HudiTable, glue: Glue, session: LocalSession) -> None:
    said = PLACE.publish(table)
    glue.asked.clear()
    assert PLACE.publish(table) == said
    assert glue.updates() == []
    # One of the two is of another publication, as a publisher leaves it that died in between.
    glue.set("t_rt", **{PUBLICATION: "another"})
    glue.asked.clear()
    PLACE.publish(table)
    assert len(glue.updates()) == 2
    compacted(table, session, 2)
    assert PLACE.publish(table)["hudi_assets.freshness_ms"] != said["hudi_assets.freshness_ms"]


def test_a_table_of_which_hudi_syncs_one_alone(table: HudiTable, glue: Glue) -> None:
    glue.client.delete_table(DatabaseName="lake", Name="t_rt")
    said = PLACE.publish(table)
    found = PLACE.found()
    assert found is not None
    assert (found.together, found.properties[PUBLICATION]) == (True, said[PUBLICATION])


# -- others at the same time


def test_what_hudis_sync_changes_meanwhile_is_not_lost(table: HudiTable, glue: Glue) -> None:
    """Between our reading and our call. AWS refuses the call then, and so does the server of these tests."""
    glue.before_update = lambda: glue.set("t_ro", last_commit_time_sync="20260301060000000")
    said = PLACE.publish(table)
    found = glue.table("t_ro")["Parameters"]
    assert found["last_commit_time_sync"] == "20260301060000000"
    assert said.items() <= found.items()
    assert said.items() <= glue.table("t_rt")["Parameters"].items()


def test_who_is_always_overtaken_says_so(table: HudiTable, glue: Glue) -> None:
    count = iter(range(100))

    def again() -> None:
        glue.set("t_ro", last_commit_time_sync=str(next(count)))
        glue.before_update = again

    glue.before_update = again
    with pytest.raises(Conflict, match="changes the table at the same time"):
        PLACE.publish(table)
    # Five of ours; those of the other one were taken.
    assert len([said for said in glue.updates() if "VersionId" in said]) == 5
    assert not [key for key in glue.table("t_ro")["Parameters"] if key.startswith(PREFIX)]


def test_of_two_publishers_the_older_reading_begins_anew(
    table: HudiTable, glue: Glue, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    PLACE.publish(table)
    compacted(table, session, 2)
    overtaken: list[int] = []
    publication = HudiTable.publication

    def read(self: HudiTable) -> object:
        found = publication(self)
        if not overtaken:
            overtaken.append(1)
            compacted(table, session, 3)
            PLACE.publish(table)
        return found

    monkeypatch.setattr(HudiTable, "publication", read)
    PLACE.publish(table)
    assert glue.table("t_ro")["Parameters"]["hudi_assets.freshness_ms"] == str(table.freshness().freshness)


# -- the freshness of each partition, as a table


def test_the_table_of_the_partitions_is_made_moved_and_taken_out(
    table: HudiTable, glue: Glue, session: LocalSession
) -> None:
    told = table.read_by({PUBLISH_PARTITIONS: "true"})
    said = PLACE.publish(told)
    found = glue.table("t_freshness")
    assert found["TableType"] == "EXTERNAL_TABLE"
    assert {c["Name"]: c["Type"] for c in found["StorageDescriptor"]["Columns"]}["freshness_ms"] == "bigint"
    assert (found["Parameters"][PUBLICATION], said["hudi_assets.partitions"]) == (said[PUBLICATION], "t_freshness")
    assert rows_of(found) == [("part=x", table.freshness().freshness)]
    glue.asked.clear()
    assert PLACE.publish(told) == said
    assert glue.updates() == []
    # What somebody else set of it stays. A promise falls: it is told before the others, and the new ones after them.
    glue.client.update_table(DatabaseName="lake", TableInput={**taken(glue, found), "Description": "for readers"})
    write(table, session, row("late", 1), row("b", HOUR, "y"), clock=3 * HOUR)
    glue.asked.clear()
    said = PLACE.publish(told)
    moved = glue.table("t_freshness")
    assert (moved["Description"], moved["Parameters"][PUBLICATION]) == ("for readers", said[PUBLICATION])
    assert moved["StorageDescriptor"]["Location"] != found["StorageDescriptor"]["Location"]
    assert rows_of(moved) == [("part=x", 0), ("part=y", HOUR - 1)]
    assert [one["TableInput"]["Name"] for one in glue.updates()] == ["t_freshness", "t_ro", "t_rt", "t_freshness"]
    assert "hudi_assets.partitions" not in PLACE.publish(table)
    assert glue.client.get_tables(DatabaseName="lake", Expression="t_freshness")["TableList"] == []


def test_somebody_elses_table_of_that_name_is_refused_or_left_alone(table: HudiTable, glue: Glue) -> None:
    glue.client.create_table(DatabaseName="lake", TableInput={"Name": "t_freshness", "Parameters": {"a": "b"}})
    with pytest.raises(InvalidInput, match="Something else has the name of the table with the freshness"):
        PLACE.publish(table.read_by({PUBLISH_PARTITIONS: "true"}))
    PLACE.publish(table)
    assert glue.table("t_freshness")["Parameters"] == {"a": "b"}


def test_who_is_overtaken_between_two_moves_begins_anew(
    table: HudiTable, glue: Glue, session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = table.read_by({PUBLISH_PARTITIONS: "true"})
    PLACE.publish(told)
    write(table, session, row("late", 1), row("b", HOUR, "y"), clock=3 * HOUR)
    theirs: dict[str, str] = {}
    alter = glue_module.Connection.alter

    def overtaken(self: glue_module.Connection, database: str, name: str, entry: Any, **how: Any) -> None:
        alter(self, database, name, entry, **how)
        if name == "t_rt" and not theirs:
            theirs["first"] = "is at work"
            theirs.update(PLACE.publish(told))

    monkeypatch.setattr(glue_module.Connection, "alter", overtaken)
    said = PLACE.publish(told)
    assert said[PUBLICATION] == theirs[PUBLICATION]
    assert {glue.table(name)["Parameters"][PUBLICATION] for name in NAMES.entries} == {said[PUBLICATION]}


def test_a_table_that_may_not_be_made_leaves_no_file_behind(table: HudiTable, glue: Glue) -> None:
    glue.denied = {"CreateTable"}
    with pytest.raises(EnvironmentProblem, match="Allow glue:CreateTable on the catalog"):
        PLACE.publish(table.read_by({PUBLISH_PARTITIONS: "true"}))
    assert list(Path(table.path, ".hoodie/.aux/hudi_assets/partitions").rglob("*.parquet")) == []


def test_in_a_bucket_it_lies_where_athena_finds_it() -> None:
    made = glue_module.new_table("T", "", [("a", "BIGINT")], "s3a://lake/t/f", PARQUET, {})
    for entry in (made, made.with_location("s3a://lake/t/f")):
        assert (entry.location, entry.table["Name"], "Owner" in entry.table) == ("s3://lake/t/f", "t", False)


def rows_of(table: dict[str, Any]) -> list[tuple[str, int | None]]:
    """Partition and freshness, as a reader of the location finds them."""
    found = pq.read_table(table["StorageDescriptor"]["Location"])
    return sorted(zip(found["partition_path"].to_pylist(), found["freshness_ms"].to_pylist(), strict=True))


def taken(glue: Glue, table: dict[str, Any]) -> dict[str, Any]:
    """What UpdateTable takes of a table."""
    fields = glue.client.meta.service_model.operation_model("UpdateTable").input_shape.members["TableInput"].members
    return {field: value for field, value in table.items() if field in fields}


# -- what cannot be done is said


def _no_database(glue: Glue) -> Place:
    return Place(URI, Names("nowhere", "t_ro", "t_rt", Form.SYNCED))


def _no_table(glue: Glue) -> Place:
    return Place(URI, Names("lake", "u_ro", "u_rt", Form.SYNCED))


def _denied_read(glue: Glue) -> Place:
    glue.denied = {"GetTable"}
    return PLACE


def _denied_update(glue: Glue) -> Place:
    glue.denied = {"UpdateTable"}
    return PLACE


def _view(glue: Glue) -> Place:
    glue.client.update_table(DatabaseName="lake", TableInput={"Name": "t_ro", "TableType": "VIRTUAL_VIEW"})
    return PLACE


def _link(glue: Glue) -> Place:
    glue.client.update_table(DatabaseName="lake", TableInput={"Name": "t_ro", "TargetTable": {"Name": "t"}})
    return PLACE


def _elsewhere(glue: Glue) -> Place:
    glue.client.update_table(DatabaseName="lake", TableInput=synced_table("t_rt", "s3://lake/t"))
    return PLACE


@pytest.mark.parametrize(
    ("where", "kind", "said"),
    [
        (_no_database, InvalidInput, ("There is no such synced table. [nowhere.t_ro]", "AwsGlueCatalogSyncTool")),
        (_no_table, InvalidInput, ("There is no such synced table. [lake.u_ro]", "--ro and --rt")),
        (_denied_read, EnvironmentProblem, ("denies glue:GetTable", "Allow glue:GetTable on the catalog", ACCOUNT)),
        (_denied_update, EnvironmentProblem, ("denies glue:UpdateTable", "lake.t_ro", "Allow glue:UpdateTable on")),
        (_view, InvalidInput, ("This is a view, no synced table.",)),
        (_link, InvalidInput, ("This table does not say where it lies.",)),
        (_elsewhere, InvalidInput, ("This is the table at s3://lake/t, not the one at ",)),
    ],
)
def test_what_cannot_be_published_is_said(
    table: HudiTable,
    glue: Glue,
    where: Callable[[Glue], Place],
    kind: type[HudiAssetsError],
    said: tuple[str, ...],
) -> None:
    place = where(glue)
    with pytest.raises(kind) as refused:
        place.publish(table)
    for words in said:
        assert words in str(refused.value)
    glue.denied.clear()
    assert not [key for key in glue.table("t_rt")["Parameters"] if key.startswith(PREFIX)]


def test_own_views_are_refused_before_anything_is_asked(table: HudiTable, glue: Glue) -> None:
    with pytest.raises(InvalidInput, match=r"Own views are not published in AWS Glue.*--synced"):
        Place(URI, Names("lake", "t_ro", "t_rt")).publish(table)
    assert glue.asked == []
    assert list(notes_of(table)) == []


@pytest.mark.parametrize(
    "uri",
    [
        "glue:",
        "glue://",
        "glue:eu-central-1",
        "glue://AKIDOFATEST:a-secret-of-a-test@eu-central-1",
        "glue://eu-central-1/not-an-id",
        "glue://eu-central-1/123456789012?endpoint=http://elsewhere",
    ],
)
def test_what_is_no_address_is_said_without_a_word_of_it(table: HudiTable, uri: str) -> None:
    with pytest.raises(InvalidInput, match="This is no address of AWS Glue") as refused:
        Place(uri, NAMES).publish(table)
    assert SECRET not in str(refused.value)


# -- credentials


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_SESSION_TOKEN": None}, "NoCredentialsError"),
        ({"AWS_PROFILE": "nobody"}, "ProfileNotFound"),
        ({"AWS_ENDPOINT_URL_GLUE": f"http://{SECRET}@127.0.0.1:1"}, "does not answer"),
        ({"AWS_ENDPOINT_URL_GLUE": SECRET}, "ValueError"),
    ],
)
def test_who_cannot_ask_hears_why_and_no_secret(
    table: HudiTable, glue: Glue, monkeypatch: pytest.MonkeyPatch, change: dict[str, str | None], said: str
) -> None:
    for name, value in change.items():
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    with pytest.raises(EnvironmentProblem) as refused:
        PLACE.publish(table)
    assert said in str(refused.value)
    _tells_no_secret(refused.value)


@pytest.mark.parametrize(
    ("change", "config", "said"),
    [
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": f"/{SECRET}", "AWS_ROLE_ARN": "arn:aws:iam::1:role/r"}, "", "No such file"),
        ({}, f"credential_process = /nowhere/program {SECRET}", "No such file"),
        ({}, f"credential_process = printf '{json.dumps(OLD)}'", "RuntimeError"),
    ],
    ids=["no token file", "no program", "a program that gives old ones"],
)
def test_credentials_that_boto3_cannot_get_are_a_problem_of_the_environment(
    table: HudiTable,
    glue: Glue,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, str],
    config: str,
    said: str,
) -> None:
    """boto3 lets through what its files, and the programs that it calls, raise. Who follows a look fails by none."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "config").write_text(f"[default]\n{config}\n")
    for name, value in {"AWS_CONFIG_FILE": str(tmp_path / "config"), **change}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(EnvironmentProblem, match=f"cannot be asked with what boto3 finds .*{said}") as refused:
        PLACE.publish(table)
    _tells_no_secret(refused.value)
    assert not follow(table.look(), table, PLACE).stands


@pytest.mark.parametrize(
    "code",
    ["InvalidSignatureException", "UnrecognizedClientException", "ExpiredTokenException", "InvalidClientTokenId"],
)
def test_refused_credentials_are_not_quoted_and_are_looked_up_anew(table: HudiTable, glue: Glue, code: str) -> None:
    """AWS quotes the signed request, with its token, to whoever signs wrongly. moto has no such answer for Glue."""
    PLACE.publish(table)
    quoted = f"The Canonical String for this request should have been 'x-amz-security-token:{TOKEN}'"
    answer = {"Error": {"Code": code, "Message": quoted}}

    def refuse(**_: object) -> object:
        return type("Answer", (), {"status_code": 400})(), answer

    for _, one in glue_module._CLIENTS.values():
        one.meta.events.register("before-call.glue.GetTable", refuse)
    with pytest.raises(EnvironmentProblem, match=f"does not take the credentials: {code}") as refused:
        PLACE.publish(table)
    _tells_no_secret(refused.value)
    assert PLACE.found() is not None


def _tells_no_secret(problem: BaseException) -> None:
    told = "".join(traceback.format_exception(problem))
    for one in (KEY, SECRET, TOKEN):
        assert one not in told


def test_a_note_holds_no_credentials(table: HudiTable, glue: Glue) -> None:
    PLACE.publish(table)
    (note,) = notes_of(table)
    assert (note.place, note.machine) == (PLACE, None)
    text = Path(note.path(table)).read_text("utf-8")
    assert not [one for one in (KEY, SECRET, TOKEN) if one in text]


def test_without_boto3_the_extra_is_named(table: HudiTable, glue: Glue, monkeypatch: pytest.MonkeyPatch) -> None:
    glue_module._CLIENTS.clear()
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(EnvironmentProblem, match=r"pip install 'hudi-assets\[glue\]'"):
        PLACE.publish(table)


def test_another_accounts_catalog_is_named_by_its_id(table: HudiTable, glue: Glue) -> None:
    place = Place(f"{URI}/{ACCOUNT}", NAMES)
    place.publish(table)
    assert {said["CatalogId"] for _, said in glue.asked if said.get("CatalogId")} == {ACCOUNT}
    assert all("CatalogId" in said for said in glue.updates())


# -- by the command line, a look and Dagster's resource


def test_by_the_command_line_and_the_environment(
    table: HudiTable, glue: Glue, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HUDI_ASSETS_METASTORE", URI)
    monkeypatch.setenv("HUDI_ASSETS_DATABASE", "lake")
    assert command(monkeypatch, "publish", table.path, "--synced", "--json") == 0
    told = json.loads(capsys.readouterr().out)["properties"]
    assert told.items() <= glue.table("t_rt")["Parameters"].items()
    assert command(monkeypatch, "publish", table.path) == 2
    assert "Own views are not published in AWS Glue" in capsys.readouterr().err
    glue.set("t_rt", **{PUBLICATION: "another"})
    glue.denied = {"UpdateTable"}
    assert command(monkeypatch, "publish", table.path, "--synced") == 1
    assert "Allow glue:UpdateTable" in capsys.readouterr().err


def test_a_look_publishes_what_has_changed_and_nothing_else(
    table: HudiTable, glue: Glue, session: LocalSession
) -> None:
    assert follow(table.look(), table, PLACE).why == "the table is not published there yet"
    PLACE.publish(table)
    compacted(table, session, 2)
    found = follow(table.look(), table, PLACE)
    assert (found.stands, found.properties is not None) == (True, True)
    glue.asked.clear()
    assert follow(table.look(), table, PLACE).properties is None
    assert glue.updates() == []
    compacted(table, session, 3)
    assert after_change(table) == []
    assert glue.table("t_ro")["Parameters"]["hudi_assets.freshness_ms"] == str(table.freshness().freshness)


def test_many_tables_are_asked_about_together(table: HudiTable, glue: Glue) -> None:
    PLACE.publish(table)
    not_there = [Place(URI, Names("lake", f"u{n}_ro", f"u{n}_rt", Form.SYNCED)) for n in range(5)]
    found = found_together([*not_there, PLACE])
    assert [one for one in not_there if found[one] is not None] == []
    assert isinstance(found[PLACE], Found)


def test_who_is_denied_one_is_not_denied_a_hundred(table: HudiTable, glue: Glue) -> None:
    """Nor waits so often, where nobody answers."""
    glue.denied = {"GetTable"}
    with pytest.raises(EnvironmentProblem, match="AWS denies glue:GetTable"):
        found_together([Place(URI, Names("lake", f"u{n}_ro", f"u{n}_rt", Form.SYNCED)) for n in range(100)])
    assert len(glue.asked) <= 50


def test_a_role_that_may_not_be_taken_is_named(table: HudiTable, glue: Glue, monkeypatch: pytest.MonkeyPatch) -> None:
    """To have credentials boto3 asks STS. Here whoever signs for Glue hears what STS says."""
    PLACE.publish(table)

    def refuse(**_: object) -> None:
        said = {"Error": {"Code": "AccessDenied", "Message": "not authorized to perform: sts:AssumeRole"}}
        raise ClientError(said, "AssumeRole")

    for _, one in glue_module._CLIENTS.values():
        one.meta.events.register("before-sign.glue.GetTable", refuse)
    with pytest.raises(EnvironmentProblem, match=r"AWS denies AssumeRole: not auth.*Allow AssumeRole to the credent"):
        PLACE.publish(table)
    glue_module._CLIENTS.clear()


def test_as_dagsters_resource(table: HudiTable, glue: Glue) -> None:
    catalog = Catalog(uri=URI, database="lake", tables="synced")
    assert not catalog.needs_spark
    said = catalog.publish(None, table, ro="t_ro", rt="t_rt")
    assert said.items() <= glue.table("t_ro")["Parameters"].items()


def test_names_are_asked_for_as_glue_stores_them(table: HudiTable, glue: Glue) -> None:
    """It folds them to lower case."""
    Place(URI, Names("Lake", "T_ro", "T_rt", Form.SYNCED)).publish(table)
    assert "hudi_assets.freshness" in glue.table("t_ro")["Parameters"]


def test_boto3s_own_setting_alone_leads_elsewhere(glue: Glue) -> None:
    assert boto3.session.Session().client("glue", region_name="eu-west-1").meta.endpoint_url.startswith("http://127.")

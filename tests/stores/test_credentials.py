"""Credentials are found where they are used, and told to nobody."""

from __future__ import annotations

import logging
import os
import pickle
import sys
import traceback
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hudi_assets.engine import HudiTable
from hudi_assets.engine.errors import EnvironmentProblem, InvalidInput
from hudi_assets.engine.spark.errors import problem_of
from hudi_assets.engine.storage import Storage, open_storage
from tests.stores.faults import running_proxy
from tests.stores.minio import BUCKET, Minio

KEY, SECRET, TOKEN = "AKIATESTKEYNAME", "asecretthatnobodysees", "atokenthatnobodysees"


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def path() -> str:
    return f"s3://{BUCKET}/credentials/{uuid.uuid4().hex}"


def works(store: Storage) -> bool:
    store.create("f", b"x")
    return store.read("f") == b"x"


# -- where they are found -----------------------------------------------------------------------


def test_options(minio: Minio) -> None:
    assert works(open_storage(path(), minio.options))


def test_environment(minio: Minio, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in minio.environment.items():
        monkeypatch.setenv(name, value)
    assert works(open_storage(path()))


def _write_profile(minio: Minio, tmp_path: Path) -> None:
    lines = f"aws_access_key_id = {minio.access_key_id}\naws_secret_access_key = {minio.secret_access_key}\n"
    (tmp_path / "credentials").write_text(f"[team]\n{lines}")
    (tmp_path / "config").write_text("[profile team]\nregion = us-east-1\n")


def test_profile(minio: Minio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_profile(minio, tmp_path)
    assert works(open_storage(path(), {"endpoint": minio.endpoint, "profile": "team"}))
    monkeypatch.setenv("AWS_PROFILE", "team")
    assert works(open_storage(path(), {"endpoint": minio.endpoint}))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)  # what is asked for goes before what lies about
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    assert works(open_storage(path(), {"endpoint": minio.endpoint, "profile": "team"}))
    with pytest.raises(EnvironmentProblem, match="The profile nobody gives no credentials"):
        works(open_storage(path(), {"endpoint": minio.endpoint, "profile": "nobody"}))


def test_the_default_profile(minio: Minio, tmp_path: Path) -> None:
    """As `aws configure` writes it."""
    _write_profile(minio, tmp_path)
    _make_default(tmp_path)
    assert works(open_storage(path(), {"endpoint": minio.endpoint}))


def _make_default(tmp_path: Path) -> None:
    for file in ("config", "credentials"):
        text = (tmp_path / file).read_text()
        (tmp_path / file).write_text(text.replace("profile team", "default").replace("team", "default"))


def test_an_access_key_of_the_environment_goes_before_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_profile(Minio(1, "AKIAOFTHEPROFILE", SECRET), tmp_path)
    for name, value in Minio(1, KEY, SECRET).environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_PROFILE", "team")
    provider = getattr(open_storage(path()), "_store").credential_provider  # noqa: B009
    assert provider()["access_key_id"] == KEY


@pytest.mark.parametrize(
    ("option", "variables", "region"),
    [
        ("eu-west-1", {"AWS_REGION": "eu-west-2"}, "eu-west-1"),
        (None, {"AWS_REGION": "eu-west-2", "AWS_DEFAULT_REGION": "eu-west-3"}, "eu-west-2"),
        (None, {"AWS_DEFAULT_REGION": "eu-west-3"}, "eu-west-3"),
        (None, {}, "us-east-1"),
    ],
)
def test_the_region_is_the_options_then_the_environments_then_the_profiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str | None, variables: dict[str, str], region: str
) -> None:
    _write_profile(Minio(1, KEY, SECRET), tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    given = {"endpoint": "http://127.0.0.1:1", "profile": "team"} | ({"region": option} if option else {})
    assert getattr(open_storage(path(), given), "_store").config["region"] == region  # noqa: B009


def test_a_bucket_that_asks_nobody_who_he_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    with running_proxy(1) as proxy:
        proxy.refuse("GET", 404, b"")
        with pytest.raises(FileNotFoundError):
            open_storage("s3://bucket/t", {"endpoint": proxy.endpoint, "region": "us-east-1"}).read("f")


def test_options_are_one_identity(minio: Minio, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies about of another one is not added."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    assert works(open_storage(path(), minio.options))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", minio.secret_access_key)
    for alone in ("access_key_id", "secret_access_key", "session_token"):
        with pytest.raises(InvalidInput, match="go together"):
            open_storage(path(), {"endpoint": minio.endpoint, alone: SECRET})


@pytest.mark.parametrize("by_option", [True, False])
def test_the_bucket_in_the_hosts_name(monkeypatch: pytest.MonkeyPatch, by_option: bool) -> None:
    """Such a name is asked of no resolver here, but of a proxy on the loopback."""
    given = {"access_key_id": KEY, "secret_access_key": SECRET, "region": "us-east-1", "virtual_hosted": "true"}
    if by_option:
        given["endpoint"] = "http://store.test:9000"
    else:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://store.test:9000")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with running_proxy(1) as proxy:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.endpoint)
        proxy.refuse("GET", 404, b"")
        with pytest.raises(FileNotFoundError):
            open_storage("s3://bucket/t", given).read("f")
    assert proxy.seen == [("GET", "http://bucket.store.test:9000/t/f")]


def test_a_bucket_in_another_region() -> None:
    given = {"access_key_id": KEY, "secret_access_key": SECRET}
    with running_proxy(1) as proxy:
        store = open_storage(path(), {"endpoint": proxy.endpoint, **given})
        malformed = b"<Error><Code>AuthorizationHeaderMalformed</Code></Error>"
        for status, body in ((301, b"<Error><Code>PermanentRedirect</Code></Error>"), (400, malformed)):
            proxy.refuse("GET", status, body)
            with pytest.raises(EnvironmentProblem, match="another region") as elsewhere:
                store.read("f")
            assert "AWS_REGION" in str(elsewhere.value.next_step)
        proxy.refuse("HEAD", 400, b"")
        with pytest.raises(OSError, match="AWS_REGION"):
            store.size("f")


def test_none(minio: Minio, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any the machine's role is asked for, at a place that has none here."""
    with running_proxy(minio.port) as nowhere:
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", nowhere.endpoint)
        for method in ("PUT", "GET"):
            nowhere.refuse(method, 403, b"")
        store = open_storage(path(), {"endpoint": minio.endpoint})
        with pytest.raises(EnvironmentProblem, match="No credentials"):
            store.read("f")
    assert nowhere.seen[0] == ("PUT", "/latest/api/token")


def test_they_are_looked_up_again_in_another_process(minio: Minio, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_storage(path(), minio.options)
    assert works(store)
    again = pickle.loads(pickle.dumps(store))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", minio.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", minio.secret_access_key)
    assert again.read("f") == b"x"  # the endpoint travels, the key does not


# -- nobody is told -----------------------------------------------------------------------------


def calls(store: Storage) -> Iterator[Callable[[], object]]:
    yield lambda: store.read("f")
    yield lambda: store.read_at("f", 0, 1)
    yield lambda: store.open("f")
    yield lambda: store.size("f")
    yield lambda: store.list_folder("d")
    yield lambda: store.create("f", b"x")
    yield lambda: store.replace("f", b"x")
    yield lambda: store.replace_if("f", b"x", '"1"')
    yield lambda: store.copy("f", "g")
    yield lambda: store.delete("f")
    yield lambda: store.delete_tree("d")
    yield lambda: _stream(store)
    yield lambda: HudiTable.open(store.base, {**store_options(store)})


def store_options(store: Storage) -> dict[str, str]:
    options: dict[str, str] = {**getattr(store, "_options"), **getattr(store, "_secrets")}  # noqa: B009
    return options


def _stream(store: Storage) -> None:
    with store.open_new("f") as out:
        out.write(b"x")


def everything_said(error: BaseException) -> str:
    chain: list[str] = []
    one: BaseException | None = error
    while one is not None:
        chain += [str(one), repr(one), repr(one.args), repr(vars(one)), repr(pickle.dumps(one))]
        one = one.__cause__ or one.__context__
    problem = problem_of(error)
    return "\n".join([*chain, *traceback.format_exception(error), str(problem), repr(problem)])


def test_errors_and_logs(minio: Minio, caplog: pytest.LogCaptureFixture) -> None:
    """Also where the store's answer holds all of it, as Amazon's does for a wrong signature."""
    caplog.set_level(logging.DEBUG)
    telling = f"""<?xml version="1.0"?><Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>{KEY}</AWSAccessKeyId>
        <StringToSign>{SECRET}</StringToSign><Token>{TOKEN}</Token></Error>""".encode()
    with running_proxy(minio.port) as proxy:
        given = {"access_key_id": KEY, "secret_access_key": SECRET, "session_token": TOKEN}
        store = open_storage(path(), {"endpoint": proxy.endpoint, "region": "us-east-1", **given})
        for method in ("", "GET", "PUT", "HEAD", "POST", "DELETE"):
            for status in (403, 400):
                proxy.refuse(method, status, telling)
                for call in calls(store):
                    with pytest.raises(Exception) as failed:
                        call()
                    said = everything_said(failed.value) + caplog.text
                    assert not [line for line in said.splitlines() if any(one in line for one in (KEY, SECRET, TOKEN))]
        proxy.refuse("GET", 403, telling)
        with pytest.raises(PermissionError, match=r"refuses it \(SignatureDoesNotMatch\)"):
            store.read("f")


def test_pickles_and_texts() -> None:
    given = {"access_key_id": KEY, "secret_access_key": SECRET, "session_token": TOKEN}
    store = open_storage(path(), {"endpoint": "http://127.0.0.1:1", **given})
    assert store.exists is not None
    made = getattr(store, "_store")  # noqa: B009
    said = "\n".join([repr(store), str(store), repr(made), repr(pickle.dumps(store)), repr(store.__reduce__())])
    assert not any(secret in said for secret in (KEY, SECRET, TOKEN))


@pytest.mark.parametrize(
    ("wrong", "options", "match"),
    [
        (f"s3://{KEY}:{SECRET}@bucket/t", {}, "does not begin with the name of a bucket"),
        (f"s3a://{KEY}:{SECRET}@bucket/t", {}, "does not begin with the name of a bucket"),
        ("s3:///t", {}, "does not begin with the name of a bucket"),
        ("s3://bucket", {}, "a folder of its own"),
        ("s3://bucket/", {}, "a folder of its own"),
        ("s3://bucket/a//b", {}, "a folder of its own"),
        ("s3://bucket/a/../b", {}, "a folder of its own"),
        ("s3://bucket/t", {"secret": SECRET}, "no storage option secret"),
        ("s3://bucket/t", {"access_key_id": KEY}, "go together"),
        ("s3://bucket/t", {"session_token": SECRET}, "go together"),
    ],
)
def test_paths_and_options_that_are_none(wrong: str, options: dict[str, str], match: str) -> None:
    with pytest.raises(InvalidInput, match=match) as refused:
        open_storage(wrong, options)
    assert KEY not in str(refused.value)
    assert SECRET not in str(refused.value)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("obstore", "hudi_assets.engine.storage."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(EnvironmentProblem, match=r"hudi-assets\[s3\]"):
        open_storage("s3://bucket/t")

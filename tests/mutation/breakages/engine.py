"""Breakages of storage, errors and the rest of the engine."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

_ENGINE = "hudi_assets/engine"
LINKS = ("tests/unit/test_links.py",)
ATTEMPTS = ("tests/crash/test_late_attempts.py", "tests/unit/test_attempts.py")
UNITS = ("tests/unit/test_event_time_units.py", "tests/property/test_event_time_units.py")
NAMED_FILES = ("tests/unit/test_named_file.py",)
FIRST_CONTACT = ("tests/cli/test_first_contact.py",)
HINTS = ("tests/cli/test_other_machines.py::test_the_hint_is_that_of_the_problem",)
ERRORS = ("tests/unit/test_errors.py", "tests/unit/test_refusals.py")
STORES = ("tests/stores/test_contract.py", "tests/stores/test_lost_answers.py", "tests/stores/test_credentials.py")


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "a new table does not state how its event times count",
        f"{_ENGINE}/create.py",
        "    return {} if unit is None else {EVENT_TIME_UNIT: str(unit)}",
        "    return {}",
        UNITS,
    ),
    Breakage(
        "a number of thousands of digits in a setting is read",
        f"{_ENGINE}/model/settings.py",
        "[0-9]{1,30}",
        "[0-9]+",
        ("tests/unit/test_setting_values.py",),
    ),
    Breakage(
        "the bounds of a number in a setting are not asked",
        f"{_ENGINE}/model/settings.py",
        "(least is not None and value < least)",
        "False",
        ("tests/unit/test_setting_values.py",),
    ),
    Breakage(
        "a link that leads to nothing is passed over",
        f"{_ENGINE}/storage/local.py",
        "                files.append(FileInfo(path, 0, target, links=0, broken=True))",
        "                pass",
        LINKS,
    ),
    Breakage(
        "a full disk does not say which file it was",
        f"{_ENGINE}/storage/named_file.py",
        "            error.filename = str(path)",
        "            pass",
        NAMED_FILES,
    ),
    Breakage(
        "a symbolic link leads to a link",
        f"{_ENGINE}/storage/local.py",
        "os.path.relpath(os.path.realpath(self._at(target)), folder)",
        "os.path.relpath(self._at(target), folder)",
        LINKS,
    ),
    Breakage(
        "a file takes the name of one that is there",
        f"{_ENGINE}/storage/local.py",
        "            # As in `create`: link() fails where rename() would overwrite.\n",
        "            target.unlink(missing_ok=True)\n",
        ATTEMPTS,
    ),
    Breakage(
        "a look puts the host's young garbage into the oldest generation",
        f"{_ENGINE}/gc_pause.py",
        "        yield\n        return\n",
        "        yield\n        gc.freeze()\n        gc.unfreeze()\n        return\n",
        ("tests/dagster/test_code_server.py",),
    ),
    Breakage(
        "a plan over many files puts the host's young garbage into the oldest generation",
        f"{_ENGINE}/gc_pause.py",
        "    finally:\n        gc.enable()\n",
        "    finally:\n        gc.freeze()\n        gc.unfreeze()\n        gc.enable()\n",
        ("tests/unit/test_collector.py",),
    ),
    Breakage(
        "what a closed folder hides is taken for missing",
        f"{_ENGINE}/storage/local.py",
        "        if error.errno != errno.EACCES:\n            raise\n",
        "        return None\n",
        FIRST_CONTACT,
    ),
    Breakage(
        "a read-only mount is called a matter of permission",
        f"{_ENGINE}/storage/local.py",
        "            if error.errno == errno.EROFS:\n",
        "            if False:\n",
        HINTS,
    ),
    Breakage(
        "a disk that is full or read-only gets the hint for a permission",
        f"{_ENGINE}/errors.py",
        "    remedy = _REMEDIES.get(error.errno or 0)\n",
        "    remedy = _REMEDIES.get(error.errno or 0) and _PERMISSION\n",
        HINTS,
    ),
    Breakage(
        "damage comes without a word on what to do",
        f"{_ENGINE}/errors.py",
        "        return self.hint or self.usual_hint\n",
        "        return self.hint\n",
        ERRORS,
    ),
    Breakage(
        "an error in a stream commits half a file",
        f"{_ENGINE}/storage/new_stream.py",
        "        if kind is not None:\n            self.abort()\n",
        "",
        STORES,
    ),
    Breakage(
        "a stream that nobody closes is committed",
        f"{_ENGINE}/storage/new_stream.py",
        "        if self._opened:\n            self.abort()",
        "        self.close()",
        STORES,
    ),
    Breakage(
        "a stream that was never opened is aborted",
        f"{_ENGINE}/storage/named_file.py",
        '        hidden = path.with_name(f".{uuid.uuid4().hex}.tmp")\n',
        '        hidden = path.with_name(f".{uuid.uuid4().hex}.tmp")\n        self._opened = True\n',
        NAMED_FILES,
    ),
    Breakage(
        "a store is tried anew each time that a table of it is opened",
        f"{_ENGINE}/storage/objects.py",
        "                _PROBED.add(self._place)\n",
        "                pass\n",
        ("tests/unit/test_store_at_once.py",),
    ),
    Breakage(
        "what keeps to conditions at one endpoint is believed of another",
        f"{_ENGINE}/storage/s3.py",
        "        return (self.base, *self._options.items(), endpoint_of(os.environ))\n",
        "        return (self.base, *self._options.items())\n",
        ("tests/unit/test_store_at_once.py",),
    ),
    Breakage(
        "a folder named as a file of the metadata table is looked for",
        f"{_ENGINE}/table/metadata/partitions.py",
        "    if storage.modified_ms(PROPERTIES) is None:",
        "    if not storage.exists(PROPERTIES):",
        ("tests/unit/test_store_at_once.py",),
    ),
    Breakage(
        "a staged file is looked for before it is deleted",
        f"{_ENGINE}/storage/objects.py",
        "            obstore.delete(self._store, self._key(staged))\n",
        "            self.delete(staged)\n",
        ("tests/unit/test_store_at_once.py",),
    ),
    Breakage(
        "the bucket is in no request to an endpoint with virtual hosts",
        f"{_ENGINE}/storage/s3.py",
        "            if endpoint:",
        "            if False:",
        STORES,
    ),
    Breakage(
        "a profile's region goes before the environment's",
        f"{_ENGINE}/storage/s3.py",
        'options.get("region") or region_of(os.environ)',
        'options.get("region")',
        STORES,
    ),
    Breakage(
        "a profile lying about goes before an access key in the environment",
        f"{_ENGINE}/storage/s3.py",
        "profile_name=profile)",
        'profile_name=profile or os.environ.get("AWS_PROFILE"))',
        STORES,
    ),
    Breakage(
        "half an identity is taken from the options",
        f"{_ENGINE}/storage/s3.py",
        "if set(options) & set(_SECRET) and",
        "if False and",
        STORES,
    ),
    Breakage(
        "a bucket in another region is a store that does not answer",
        f"{_ENGINE}/storage/object_errors.py",
        "if _NO_LOCATION in text or",
        "if",
        STORES,
    ),
    Breakage(
        "a file is published and its publication refused",
        f"{_ENGINE}/storage/objects.py",
        "with suppress(OSError), self._changing(staged):",
        "with self._changing(staged):",
        STORES,
    ),
    Breakage(
        "EMR's mark of a folder is a file",
        f"{_ENGINE}/storage/objects.py",
        ' and not key.endswith("_$folder$")',
        "",
        STORES,
    ),
    Breakage(
        "after an error the rest of many is asked all the same",
        f"{_ENGINE}/storage/at_once.py",
        "return_when=FIRST_EXCEPTION",
        "timeout=None",
        STORES,
    ),
    Breakage(
        "a fork waits for ever for a store",
        f"{_ENGINE}/storage/forks.py",
        "if _BEGUN_IN[0] != os.getpid():",
        "if False:",
        STORES,
    ),
    Breakage(
        "half a file is seen while it is written",
        f"{_ENGINE}/storage/named_file.py",
        'path.with_name(f".{uuid.uuid4().hex}.tmp")',
        "path",
        STORES,
    ),
    Breakage(
        "another's file is taken for the one that this call wrote",
        f"{_ENGINE}/storage/objects.py",
        "if found is not None and found.writer == writer:",
        "if found is not None:",
        STORES,
    ),
    Breakage(
        "what was written is refused where its answer was lost",
        f"{_ENGINE}/storage/objects.py",
        "if found is not None and found.writer == writer:",
        "if False and found is not None:",
        STORES,
    ),
    Breakage(
        "a file is published over another one",
        f"{_ENGINE}/storage/objects.py",
        "overwrite=False",
        "overwrite=True",
        STORES,
    ),
    Breakage(
        "what a store said stays in the context of an error",
        f"{_ENGINE}/storage/object_errors.py",
        "            error.args = ()",
        "            pass",
        STORES,
    ),
    Breakage(
        "credentials travel with a table",
        f"{_ENGINE}/storage/s3.py",
        "return (S3Storage, (self.base, self._options))",
        "return (S3Storage, (self.base, {**self._options, **self._secrets}))",
        STORES,
    ),
    Breakage(
        "an aborted upload is committed",
        f"{_ENGINE}/storage/object_streams.py",
        "                if self._aborted:",
        "                if False:",
        STORES,
    ),
    Breakage(
        "of many, an answer stands at another one's place",
        f"{_ENGINE}/storage/at_once.py",
        "[future.result() for future in futures]",
        "[future.result() for future in reversed(futures)]",
        STORES,
    ),
    Breakage(
        "whether a folder is there is asked by a list of all that is in it",
        "hudi_assets/engine/storage/objects.py",
        '            pages = obstore.list(self._store, f"{key}/" if key else None, chunk_size=1)\n',
        '            pages = obstore.list(self._store, f"{key}/" if key else None)\n',
        STORES,
    ),
)

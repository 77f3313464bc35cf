"""Breakages of catalogs."""

from __future__ import annotations

from tests.mutation.breakages.breakage import Breakage

NOTES = ("tests/catalog/test_notes.py",)
PUBLICATION = ("tests/unit/test_publication.py",)
CATALOG_VALUES = ("tests/unit/test_catalog_values.py",)
PUBLISHING = ("tests/unit/test_publishing.py",)
NOTED_VIEWS = ("tests/catalog/test_clean_from_python.py",)


BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        "a struct of the metastore's loses what this release does not know",
        "hudi_assets/catalog/thrift_values.py",
        "        fields[number] = Value(kind, _read(protocol, kind))\n",
        "        read = Value(kind, _read(protocol, kind))\n        fields |= {number: read} if number < 20 else {}\n",
        CATALOG_VALUES,
    ),
    Breakage(
        "parameters that others set of a synced table are lost",
        "hudi_assets/catalog/publication.py",
        "for key, value in old.items() if not key.startswith(PREFIX)",
        "for key, value in old.items() if key.startswith(PREFIX)",
        CATALOG_VALUES,
    ),
    Breakage(
        "a view that names other files than the table has stays as it is",
        "hudi_assets/catalog/publication.py",
        "    if files and published.get(VIEW_DIGEST) != seen.view_digest:\n",
        "    if files and not seen.view_digest:\n",
        CATALOG_VALUES,
    ),
    Breakage(
        "of two publishers the older reading may come last",
        "hudi_assets/catalog/publishing.py",
        "    return None if value is None else (PUBLICATION, value)\n",
        "    return None\n",
        ("tests/catalog/test_views.py",),
    ),
    Breakage(
        "after a rollback the published view names files that are gone",
        "hudi_assets/catalog/follow.py",
        '    except (HudiAssetsError, OSError) as problem:\n        return f"{note',
        '    except (HudiAssetsError, OSError) as problem:\n        raise\n        return f"{note',
        NOTES,
    ),
    Breakage(
        "a clean publishes by the settings of whoever cleans",
        "hudi_assets/catalog/follow.py",
        "            elif found.properties.get(VIEW_DIGEST) != (digest := table.view_digest()):\n"
        "                note.place.publish(_read_as(table, found, note.settings))\n",
        "            elif found.properties.get(VIEW_DIGEST) != (digest := table.view_digest()):\n"
        "                note.place.publish(table)\n",
        NOTES,
    ),
    Breakage(
        "a rollback publishes by the settings of whoever rolls back",
        "hudi_assets/catalog/follow.py",
        "        else:\n            note.place.publish(_read_as(table, found, note.settings))\n",
        "        else:\n            note.place.publish(table)\n",
        NOTES,
    ),
    Breakage(
        "a clean without event times is refused where the view is true",
        "hudi_assets/catalog/follow.py",
        "            elif found.properties.get(VIEW_DIGEST) != (digest := table.view_digest()):\n",
        "            elif digest := table.view_digest():\n",
        NOTES,
    ),
    Breakage(
        "a note of another machine's metastore is forgotten",
        "hudi_assets/catalog/places.py",
        "        if self.machine == self.place.machine and not self.place.was_never_used:\n            return\n",
        "        return\n",
        NOTES,
    ),
    Breakage(
        "a note is forgotten where the published path is not here",
        "hudi_assets/catalog/follow.py",
        "    if same is None:\n",
        "    if same is None and not found.path:\n",
        NOTES,
    ),
    Breakage(
        "a link to a table is another table",
        "hudi_assets/catalog/places.py",
        "        return os.path.samefile(published, path)\n",
        "        return os.path.isfile(published)\n",
        NOTES,
    ),
    Breakage(
        "a publisher that dies leaves a view that nobody protects",
        "hudi_assets/catalog/places.py",
        "        _note(table, self, address)\n        file = self.note_file\n",
        "        file = self.note_file\n        publish(address, table, self.names)\n"
        "        _note(table, self, address)\n",
        NOTES,
    ),
    Breakage(
        "an address that nobody answers at is noted",
        "hudi_assets/catalog/places.py",
        "    elif address is not None:\n        with hive.connect(address, timeout_ms=_QUICK_MS) as metastore:\n"
        "            metastore.entry(place.names.database, place.names.ro)\n",
        "",
        NOTES,
    ),
    Breakage(
        "a snapshot view that a dying publisher left behind stays",
        "hudi_assets/catalog/follow.py",
        "        why = why or (None if found.together else _APART)\n",
        "",
        NOTES,
    ),
    Breakage(
        "a reason that is no longer true stays published",
        "hudi_assets/catalog/publication.py",
        '_SAYS = (_FRESHNESS_MS, "hudi_assets.threshold_ms", _INSTANT, REASON)\n',
        '_SAYS = (_FRESHNESS_MS, "hudi_assets.threshold_ms", _INSTANT)\n',
        PUBLICATION,
    ),
    Breakage(
        "a reason of before stays in a synced table",
        "hudi_assets/catalog/spark_sql.py",
        "        if REASON not in properties:",
        "        if REASON in ():",
        PUBLICATION,
    ),
    Breakage(
        "a table of somebody else becomes the source of our snapshot view",
        "hudi_assets/catalog/publishing.py",
        "    if place is None or not same_place(place, path):\n        raise not_our_source",
        "    if place == path + '.':\n        raise not_our_source",
        PUBLISHING,
    ),
    Breakage(
        "a table of another data source counts as ours",
        "hudi_assets/catalog/views.py",
        ' or said.get("spark.sql.sources.provider") != "hudi_assets":',
        ":",
        ("tests/unit/test_publishing.py::test_what_reads_a_table_is_told_by_its_provider",),
    ),
    Breakage(
        "there is a moment without the source of the snapshot view",
        "hudi_assets/catalog/publishing.py",
        "        metastore.alter(names.database, name, views.with_schema(old, read.schema))\n",
        "        metastore.drop(names.database, name)\n        metastore.create(names.database, name, wanted)\n",
        PUBLISHING,
    ),
    Breakage(
        "by Spark somebody else's view is replaced",
        "hudi_assets/catalog/spark_sql.py",
        "        _refuse_others_view(spark, names, names.ro, table.path)\n",
        "",
        PUBLISHING,
    ),
    Breakage(
        "by Spark somebody else's table is dropped",
        "hudi_assets/catalog/spark_sql.py",
        "            _refuse_others_source(spark, names, table.path)\n",
        "",
        PUBLISHING,
    ),
    Breakage(
        "by Spark the removal of our views takes others' along",
        "hudi_assets/catalog/spark_sql.py",
        "        if _view_of(spark, names, view) is not None:\n",
        "        if view:\n",
        PUBLISHING,
    ),
    Breakage(
        "a promise is published into the synced tables of another table",
        "hudi_assets/catalog/publishing.py",
        "    if not same_place(place, path):\n",
        "    if not place:\n",
        PUBLISHING,
    ),
    Breakage(
        "publishing into a synced table undoes a Hive sync meanwhile",
        "hudi_assets/catalog/publishing.py",
        "        entry = None if old is None else _synced_table(metastore, names, name, table.path)\n",
        "        entry = old\n",
        PUBLISHING,
    ),
    Breakage(
        "into a synced table the older of two readings may come last",
        "hudi_assets/catalog/publishing.py",
        "        if _expected(entry) != _expected(old):\n",
        "        if _expected(entry) == ('', ''):\n",
        PUBLISHING,
    ),
    Breakage(
        "a metastore's server that hangs is not left for the next",
        "hudi_assets/catalog/hive.py",
        "                if self._answered or method not in _QUESTIONS or not self._left:\n",
        "                if method:\n",
        PUBLISHING,
    ),
    Breakage(
        "a change may be sent to two servers of a metastore",
        "hudi_assets/catalog/hive.py",
        "if self._answered or method not in _QUESTIONS or not self._left:",
        "if self._answered or not self._left:",
        PUBLISHING,
    ),
    Breakage(
        "a metastore's port that is none ends in a traceback",
        "hudi_assets/catalog/hive.py",
        "    except ValueError as error:\n        raise InvalidInput",
        "    except KeyError as error:\n        raise InvalidInput",
        PUBLISHING,
    ),
    Breakage(
        "the home directory's metastore listens on all addresses",
        "hudi_assets/catalog/java/LoopbackMetastore.java",
        'new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0]))',
        "new InetSocketAddress(Integer.parseInt(args[0]))",
        ("tests/catalog/test_loopback.py",),
    ),
    Breakage(
        "a commit between publishing and cleaning puts the clean off",
        "hudi_assets/catalog/follow.py",
        "        except OutdatedView:\n            continue\n",
        "        except OutdatedView:\n            raise\n",
        NOTED_VIEWS,
    ),
    Breakage(
        "a publisher forgets the view that stood there before his is there",
        "hudi_assets/catalog/places.py",
        "sorted({*before, digest})",
        "[digest]",
        NOTED_VIEWS,
    ),
    Breakage(
        "a note grows with each publisher that does not come to an end",
        "hudi_assets/catalog/places.py",
        "if now is None or len(now) > _MOST_DIGESTS else now",
        "if now is None else now",
        NOTED_VIEWS,
    ),
    Breakage(
        "a first publication is not noted after a clean beside it",
        "hudi_assets/catalog/places.py",
        "        _note(table, self, None)\n",
        "",
        NOTED_VIEWS,
    ),
    Breakage(
        "a first publication that comes while the place is forgotten is not noted",
        "hudi_assets/catalog/follow.py",
        "    forget(table, note)\n    found = _found(note, table)\n",
        "    forget(table, note)\n    found = None\n",
        NOTED_VIEWS,
    ),
    Breakage(
        "a look leaves in the note what a publisher that died left there",
        "hudi_assets/catalog/follow.py",
        "        if names_files:\n",
        "        if False:\n",
        NOTED_VIEWS,
    ),
    Breakage(
        "a view that was found true is not noted",
        "hudi_assets/catalog/follow.py",
        "                note_only_view(table, note.file, digest)  # it may be an earlier day's note\n",
        "                pass\n",
        NOTED_VIEWS,
    ),
    Breakage(
        "of many names one in capitals is not found",
        "hudi_assets/catalog/hive.py",
        "found.get(name.lower())",
        "found.get(name)",
        ("tests/catalog/test_follow.py",),
    ),
)

# make        the environment, into .venv
# make run    the main job: a stream of flights into a Hudi table, compacted on event time   (DAYS=14 WAREHOUSE=s3://bucket/folder)
# make test   the tests, two at a time   (WORKERS=2)
# make test-quick, test-thorough    a slice without Spark, of a minute or so; what `make test` leaves out
# make ui     Dagster's UI on what `make run` made   (PORT=3000; SHARED_SPARK=0: each of its runs has a Spark of its own)
# make test-wheel    the wheel in an empty environment, and in a dg project of somebody else's
# make test-property, test-lives    random examples, by a seed that is printed   (SEED=random ROUNDS=1)
# make test-races, test-kills, test-cluster, test-yarn, test-connect, test-live, test-ticks, test-fuzz, test-breakages    more of what `make test` runs a slice of
# make test-stores    tables in buckets: one contract for every store, on a real MinIO
# make test-hdfs    tables in HDFS, on a real one of Hadoop's mini-cluster; fetches 56 MB once
# make test-emulators    tables in Azure and Google Cloud Storage, looked at, on Azurite and fake-gcs-server
# make test-stores-spark, test-stores-hudi    tables in buckets through Spark, and beside Apache Hudi; fetch 690 and 281 MB once
# make test-postgres    Dagster's instance on PostgreSQL: a real daemon and code server, ticks, a run
# make test-zookeeper    Hudi's lock in ZooKeeper, on a real server and beside Curator
# make test-trino    what Trino, DuckDB, PyArrow and hudi-rs show of a table; fetches 821 MB once
# make bench  against Apache Hudi, hudi-rs and the bare cost, as ratios   (ROWS=2000000 RUNS=3 WORK=trips ONLY=row,row)
# make bench-page, bench-further, bench-store    its result into docs/reference/benchmarks.md; growth, planning of many files, looking; in a bucket
# make sql    spark-sql on the same catalog

DAYS ?= 14
PORT ?= 3000
# The runs of a UI are small, and come one after the other. In a bucket each has a Spark of its own, with hadoop-aws.
SHARED_SPARK ?= $(or $(HUDI_ASSETS_SHARED_SPARK),$(if $(AT_STORE),0,1))
ARGS ?=
WAREHOUSE ?=
ROWS ?= 2000000
RUNS ?= 3
WORK ?= trips
ONLY ?=
TABLES ?=
WORKERS ?= 2
LOG_FILES ?= 100000
LIVES ?= 100
STEPS ?= 50
SEED ?= random
ROUNDS ?= 1
RACE_SECONDS ?= 150
KILLS ?= 300
COMPACTIONS ?= 10
FUZZ_EXAMPLES ?= 1000
FUZZ_SEED ?= 0
MINUTES ?= 10
TICKS ?= 3600
ENV := scripts/with-env
SETUP := scripts/setup
# Of what is random: a number that can be given again.
NUMBER := $(if $(filter random,$(SEED)),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '),$(SEED))

# The demo's table elsewhere; in a bucket its Spark has hadoop-aws.
ifneq ($(strip $(WAREHOUSE)),)
export HUDI_ASSETS_WAREHOUSE := $(patsubst %/,%,$(WAREHOUSE))
endif
AT_STORE := $(if $(filter s3://% s3a://%,$(WAREHOUSE)),scripts/with-hadoop-aws)

.DEFAULT_GOAL := setup
.PHONY: setup spark-classes run ui sql test test-quick test-wheel test-together test-sparks test-alone test-thorough test-interop test-interop-slice test-zoo test-spark35 test-newest-dagster test-property test-lives test-races test-kills test-cluster test-yarn test-connect test-live test-flinks-order test-postgres test-stores test-hdfs test-emulators test-stores-spark test-stores-hudi test-zookeeper test-trino test-fuzz test-breakages bench bench-page bench-further bench-store lint format ci lock clean distclean

setup:
	@$(SETUP)

# For the tests: a Spark that has its classes from a file starts in half the time. 190 MB in .venv, made once.
spark-classes: setup
	@$(ENV) python -m tests.spark_classes

run: setup
	@$(ENV) $(AT_STORE) python -m hudi_assets.demo --days $(DAYS) $(ARGS)

ui: setup
	@$(ENV) python -m hudi_assets.demo.ui $(PORT)
	@echo "Dagster's UI: http://127.0.0.1:$(PORT)   (Ctrl-C ends it)"
	@HUDI_ASSETS_SHARED_SPARK=$(SHARED_SPARK) $(ENV) $(AT_STORE) dagster dev --workspace workspace.yaml --host 127.0.0.1 --port $(PORT)

# spark-sql on the catalog in which the views stand. ARGS='-e "SHOW TBLPROPERTIES flights_ro"' for one statement.
sql: setup
	@$(ENV) sh -c 'test -d "$$HUDI_ASSETS_HOME/spark" || { echo "There is no catalog yet. Run: make run"; exit 1; }'
	@$(ENV) sh -c 'SPARK_CONF_DIR="$$HUDI_ASSETS_HOME/spark" exec spark-sql "$$@"' spark-sql $(ARGS)

# WORKERS processes, a file in one of them, in the order of the folders: the many small files come last and even out. The files
# of tests/catalog go to one process together (tests/quick_machine.py).
# TOGETHER runs in the test's own process; of SPARKS each process starts a Spark of its own. The others race.
TOGETHER := tests/machine tests/crash tests/property tests/fuzz tests/stores tests/unit
# Those whose tables may be in a bucket: a crash before each operation, and random lives.
IN_BUCKETS := -k "9 or 8 or whole or (6 and not symlink and not hardlink)" tests/crash/test_crashes.py tests/crash/test_undo_crashes.py tests/machine
IN_HDFS := -k "9 or 8 or 6-copy" tests/crash/test_crashes.py tests/crash/test_undo_crashes.py tests/machine
SPARKS := tests/catalog tests/cli tests/spark tests/dagster
IN_WORKERS := --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
# Of few files with long tests: each test goes where there is nothing to do.
EVENLY := --numprocesses $(WORKERS) --dist worksteal
# Those that take longest begin: whoever has one at the end is waited for.
QUICK := $(addprefix tests/unit/,test_zookeeper.py test_kept_looks.py slo hidden_rows) \
  $(addprefix tests/property/test_,selection.py clean_plan.py packing.py event_time_units.py timeline_names.py) tests/unit
# Of tests that wait for daemons and leases much of the time: a process more than there are cores. The longest files first.
WAITING := --numprocesses $$(($(WORKERS) + 1)) --dist loadfile --no-loadscope-reorder
LONGEST := tests/stores/ tests/ui/ tests/catalog/ tests/dagster/
LONGEST_FIRST := $(LONGEST) $(filter-out $(LONGEST) tests/__pycache__/,$(wildcard tests/*/))
# What .ci/run has a step of its own for.
NOT_THOROUGH := -m "not interop and not thorough and not wheel"

ifeq ($(strip $(ARGS)),)
# All, whatever the first one says: one run then shows all that is wrong.
test: setup
	@failed=; for suite in test-together test-sparks test-alone; do \
	  $(MAKE) --no-print-directory $$suite || failed="$$failed $$suite"; \
	done; if [ -n "$$failed" ]; then echo "Failed:$$failed" >&2; exit 1; fi
else
test: spark-classes
	@$(ENV) python -m pytest $(ARGS)
endif

# For while one writes: no Spark, no lives, no crashes.
test-quick: setup
	@$(ENV) python -m pytest -m "not interop and not thorough and not slow and not wheel" $(IN_WORKERS) $(QUICK)

test-together: spark-classes
	@$(ENV) python -m pytest $(NOT_THOROUGH) $(IN_WORKERS) $(TOGETHER)

test-sparks: spark-classes
	@$(ENV) python -m pytest $(NOT_THOROUGH) $(IN_WORKERS) $(SPARKS)

test-alone: spark-classes
	@$(ENV) python -m pytest $(NOT_THOROUGH) $(patsubst %,--ignore=%,$(TOGETHER) $(SPARKS))

# The wheel in an empty environment elsewhere, and the component in a dg project of somebody else's. Gigabytes, so on disk.
test-wheel: setup
	@TMPDIR=$${TMPDIR:-/tmp} $(ENV) python -m pytest -m wheel tests/wheel $(ARGS)

# Other versions and forms of what `make test` tries, all stages of the benchmarks, Dagster's UI in a browser, a real Prometheus.
test-thorough: spark-classes
	@scripts/grafana-types-setup || true
	@$(ENV) python -m pytest -m "thorough and not interop" $(WAITING) $(or $(ARGS),$(LONGEST_FIRST))

# Apache Hudi 0.15.0 and 1.2.0 and hudi-rs beside the engine: all of it, or a slice that is quick enough for each change;
# each of WORKERS processes has Sparks of its own.
test-interop: spark-classes
	@$(ENV) scripts/interop-setup
	@$(ENV) scripts/glue-sync-setup
	@$(ENV) python -m pytest -m interop --timeout 1800 $(EVENLY) $(ARGS)

test-interop-slice: spark-classes
	@$(ENV) scripts/interop-setup
	@$(ENV) python -m pytest -m "interop and not slow" $(EVENLY) $(or $(ARGS),tests/interop)

# Each configuration of docs/reference/zoo.md, written by Apache Hudi: it does what that page says.
test-zoo: spark-classes
	@$(ENV) scripts/interop-setup
	@$(ENV) python -m pytest -m interop --timeout 1800 $(EVENLY) tests/interop/zoo $(ARGS)

# A slice of tests/spark on PySpark 3.5; all else runs on the locked Spark 4.
test-spark35: spark-classes
	@scripts/test-spark35 $(ARGS)

# What we take of Dagster, on its newest release in place of the locked one. Not in .ci/run: it may fail without a change here.
test-newest-dagster: setup
	@scripts/test-newest-dagster $(ARGS)

# Every test of properties with examples that no run has tried, ROUNDS times. Those of `make test` are always the same.
test-property: setup
	@failed=; for round in $$(seq 0 $$(($(ROUNDS) - 1))); do \
	  seed=$$(($(NUMBER) + round)); echo "make test-property SEED=$$seed"; \
	  $(ENV) python -m pytest -m "hypothesis and not interop" --numprocesses $(WORKERS) \
	    --hypothesis-profile random --hypothesis-seed $$seed $(ARGS) || failed="$$failed $$seed"; \
	done; if [ -n "$$failed" ]; then echo "Failed with SEED of$$failed" >&2; exit 1; fi

# Random lives of a table against an oracle.
test-lives: setup
	@echo "make test-lives LIVES=$(LIVES) STEPS=$(STEPS) SEED=$(NUMBER)"
	@MACHINE_EXAMPLES=$(LIVES) MACHINE_STEPS=$(STEPS) MACHINE_SEED=$(NUMBER) $(ENV) python -m pytest -rP $(EVENLY) tests/machine $(ARGS)

# Eight processes at once on one table, for RACE_SECONDS.
test-races: setup
	@RACE_SECONDS=$(RACE_SECONDS) $(ENV) python -m pytest -s tests/races $(ARGS)

# kill -9 of writers, planners and executors, KILLS times.
test-kills: setup
	@KILLS=$(KILLS) $(ENV) python -m pytest -s tests/kill $(ARGS)

# A Spark cluster of two workers with speculation: COMPACTIONS on each table version, with attempts that write too late.
# And workers that lack the package or the table, or are sent the package; and an executor that is killed.
test-cluster: spark-classes
	@COMPACTIONS=$(COMPACTIONS) $(ENV) python -m pytest -s tests/cluster $(ARGS)

# A packed environment on a real YARN of Hadoop's mini-cluster.
test-yarn: spark-classes
	@$(ENV) scripts/yarn-setup
	@TEST_YARN=1 $(ENV) python -m pytest -s tests/cluster/test_yarn.py $(ARGS)

# The tests of Spark by Spark Connect, with a server in a process of its own.
test-connect: spark-classes
	@SPARK_SESSION=connect $(ENV) python -m pytest tests/connect $(CONNECT_ARGS)
	@SPARK_SESSION=connect $(ENV) python -m pytest $(or $(ARGS),tests/spark)

# As many ticks as an hour has seconds, on a real code server: memory has to stand still.
test-ticks: setup
	@MANY_TICKS=$(TICKS) $(ENV) python -m pytest -s tests/dagster/test_many_ticks.py $(ARGS)

# A real daemon and code server on a PostgreSQL that is started for it, and very many ticks there.
test-postgres: setup
	@$(ENV) python -m pytest -m "" tests/dagster/test_postgres.py $(ARGS)
	@MANY_POSTGRES=here $(ENV) python -m pytest -s tests/dagster/test_many_ticks.py $(ARGS)

# A streaming writer of Apache Hudi beside our sensor, for MINUTES.
test-live: setup
	@$(ENV) scripts/interop-setup
	@MINUTES=$(MINUTES) $(ENV) python -m pytest -s tests/live -m live $(ARGS)

# A writer that takes the steps of Hudi's Flink job, in turn with us; with MINUTES given, beside our sensor too.
test-flinks-order: setup
	@$(ENV) scripts/interop-setup
	@$(ENV) python -m pytest -m interop --timeout 3000 tests/interop/flink $(ARGS)
ifeq ($(origin MINUTES),command line)
	@MINUTES=$(MINUTES) $(ENV) python -m pytest -s tests/live/test_in_flinks_order.py -m live $(ARGS)
endif

# What every store has to do, on disk and on a real MinIO, with faults between it and us; and tables there.
test-stores: setup
	@scripts/stores-setup
	@$(ENV) python -m pytest -m "not thorough and not interop" $(IN_WORKERS) tests/stores $(ARGS)
# A crash before each operation, and random lives: of tables in buckets that are folders.
	@TABLES_IN=bucket MACHINE_EXAMPLES=1 $(ENV) python -m pytest -m "not thorough" $(EVENLY) $(IN_BUCKETS)

# The same contract on a real HDFS, and tables there; then crashes and random lives of tables in what is to the engine one.
test-hdfs: setup
	@$(ENV) scripts/hdfs-setup
	@TEST_HDFS=1 $(ENV) python -m pytest -m "not thorough and not interop" $(IN_WORKERS) -k hdfs tests/stores $(ARGS)
	@TABLES_IN=hdfs MACHINE_EXAMPLES=1 $(ENV) python -m pytest -m "not thorough" $(EVENLY) $(IN_HDFS)

# The contract and tables that are looked at, on what stands for Azure and Google Cloud Storage.
test-emulators: setup
	@scripts/emulators-setup
	@$(ENV) python -m pytest -k "azure or gcs" tests/stores/test_contract.py tests/stores/test_azure_and_gcs.py $(ARGS)

# All queries through Spark of a table on a real MinIO, with hadoop-aws and without.
test-stores-spark: setup
	@scripts/stores-setup
	@$(ENV) scripts/hadoop-aws-setup 3.5.0
	@$(ENV) python -m pytest -m "" tests/stores/test_queries_by_spark.py $(ARGS)

# Apache Hudi 1.2.0 and we on one table on a real MinIO: in turn, and at once with Hudi's own lock.
test-stores-hudi: setup
	@scripts/stores-setup
	@$(ENV) scripts/interop-setup
	@$(ENV) scripts/hadoop-aws-setup 3.3.4
	@$(ENV) python -m pytest -m "" -rP tests/stores/test_beside_hudi.py $(ARGS)

# Hudi's lock in ZooKeeper: who waits for whom, and what a holder's death frees. `make test` runs a slice of it.
test-zookeeper: setup
	@$(ENV) python -m pytest tests/zookeeper $(ARGS)

# What other readers show of a table, Trino on a real metastore among them, as docs/reference/readers.md says.
test-trino: setup
	@$(ENV) scripts/interop-setup
	@$(ENV) scripts/trino-setup
	@$(ENV) python -m pytest -m interop --timeout 1800 tests/interop/trino $(ARGS)

# Damaged and hostile files of every kind.
test-fuzz: setup
	@FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) FUZZ_SEED=$(FUZZ_SEED) $(ENV) python -m pytest $(EVENLY) tests/fuzz $(ARGS)

# Breaks the engine on purpose, one way at a time, and asks that the tests notice. ARGS='--every 5' for a slice; and
# '--green' where the tests pass as they are, which else is looked at first.
test-breakages: setup
	@$(ENV) python -m tests.mutation.check $(ARGS)

# The same work by the engine and by its peers, in turn: ratios. ONLY: some rows; TABLES: a folder to keep tables in.
bench: setup
	@$(ENV) scripts/interop-setup
	@$(ENV) python -m benchmarks --rows $(ROWS) --runs $(RUNS) --work $(WORK) --only "$(ONLY)" --log-files $(LOG_FILES) $(if $(TABLES),--tables $(TABLES)) $(ARGS)

# The last result of `make bench` into docs/reference/benchmarks.md, and there too growth, planning of many files and looking.
bench-page: setup
	@$(ENV) python -m benchmarks.report --write docs/reference/benchmarks.md

bench-further: setup
	@$(ENV) python -m benchmarks.further --write docs/reference/benchmarks.md $(ARGS)

# In a bucket of a MinIO on this machine, beside Apache Hudi there, with the requests of each; into its page.
bench-store: setup
	@scripts/stores-setup
	@$(ENV) scripts/interop-setup
	@$(ENV) scripts/hadoop-aws-setup
	@$(ENV) python -m benchmarks.on_minio --rows $(ROWS) --runs $(RUNS) --write docs/reference/benchmarks.md $(ARGS)

lint: setup
	@$(ENV) ruff check .
	@$(ENV) ruff format --check .
	@$(ENV) mypy
	@$(ENV) lint-imports

format: setup
	@$(ENV) ruff check --fix .
	@$(ENV) ruff format .

# All that a change has to pass, on a machine where nothing is installed yet.
ci:
	@.ci/run

# Resolves the dependencies anew. Needs uv.
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --all-extras --group dev pyproject.toml -o requirements.lock

# What the job wrote, and the tools' caches. A home that HUDI_ASSETS_HOME moved elsewhere is left alone.
clean:
	rm -rf .hudi-assets .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: clean
	rm -rf .venv *.egg-info

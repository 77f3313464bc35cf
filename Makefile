# make        the environment, into .venv
# make run    the main job: a stream of flights into a Hudi table, compacted on event time   (DAYS=14)
# make test   the tests
# make ui     Dagster's UI on what `make run` made   (PORT=3000)

DAYS ?= 14
PORT ?= 3000
ARGS ?=
INTEROP_SLICE ?= interop
ENV := scripts/with-env

.DEFAULT_GOAL := setup
.PHONY: setup run ui test test-interop interop lint format ci lock clean distclean

setup:
	@scripts/setup

run: setup
	@$(ENV) python -m hudi_assets.demo --days $(DAYS) $(ARGS)

ui: setup
	@echo "Dagster's UI: http://127.0.0.1:$(PORT)   (Ctrl-C ends it)"
	@$(ENV) dagster dev --workspace workspace.yaml --host 127.0.0.1 --port $(PORT)

test: setup
	@$(ENV) python -m pytest $(ARGS)

lint: setup
	@$(ENV) ruff check .
	@$(ENV) ruff format --check .
	@$(ENV) mypy

format: setup
	@$(ENV) ruff check --fix .
	@$(ENV) ruff format .

# All that a change has to pass, on a machine where nothing is installed yet.
ci:
	@.ci/run

# Resolves the dependencies anew. Needs uv.
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --group dev pyproject.toml -o requirements.lock

# What the job wrote, and the tools' caches. A home that HUDI_ASSETS_HOME moved elsewhere is left alone.
clean:
	rm -rf .hudi-assets .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: clean
	rm -rf .venv *.egg-info

# Each target does all of its own set-up, without root; second runs reuse everything.
SHELL := bash
BIN := .venv/bin
STAGE := local/stage.sh
PYTEST := $(BIN)/python -m pytest -q

.DEFAULT_GOAL := help
.PHONY: help setup build demo up down status test unit component soak e2e check fmt changelog

help: ## Say what there is
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: .venv/.ready ## Install everything into .venv
.venv/.ready: pyproject.toml local/set-up.sh
	@$(STAGE) "set-up" local/set-up.sh

build: setup ## Build the one-machine cluster and Helm (once a machine)
	@$(STAGE) "build" $(BIN)/python -m fish_local build

demo: build ## Watch speech traffic take GPUs from a cleaning job and give them back
	@$(BIN)/python -m fish_local demo

up: build ## Start the one-machine cluster
	@$(BIN)/python -m fish_local up
down: setup ## Stop it
	@$(BIN)/python -m fish_local down
status: setup ## Who holds which GPU
	@$(BIN)/python -m fish_local status

test: check unit component e2e ## Everything that CI runs

unit: setup ## No network, GPU, cluster or sleep
	@$(STAGE) "unit tests" $(PYTEST) tests/unit --numprocesses auto --dist loadfile
component: build ## One real thing each: an API server, an engine, a worker
	@$(STAGE) "component tests" $(PYTEST) tests/component
soak: build ## The long proofs on a real Slurm, with all repeats: two hours, needs root
	@$(STAGE) "soak" env FISH_SLURM_SCALE=full $(PYTEST) -s --timeout=7200 tests/component/slurm
e2e: build ## From a request to sound, from traffic to a reclaimed GPU
	@$(STAGE) "end-to-end tests" $(PYTEST) tests/e2e

check: build ## Style, types, who may know whom
	@$(STAGE) "ruff" $(BIN)/ruff check .
	@$(STAGE) "format" $(BIN)/ruff format --check .
	@$(STAGE) "types" $(BIN)/mypy
	@$(STAGE) "imports" $(BIN)/lint-imports
	@$(STAGE) "go" $(BIN)/python -m fish_local check-go

fmt: setup ## Format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix-only -q .

changelog: setup ## Draw the fragments of changelog.d together
	@$(BIN)/towncrier build --draft

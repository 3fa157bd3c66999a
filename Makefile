# `make` alone lists what there is. Every target prepares .venv first, with pip and any Python >= 3.11.
# CI runs `make check install-check image-check swarm soak test contract e2e SEEDS=200`: green here is green there.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help demo test check install-check image-check lock docs contract e2e controlplane bench bench-peer fuzz fuzz-objects swarm soak fix clean

BIN   := .venv/bin
PATHS := src tests $(wildcard benchmarks)
SEEDS ?= 1000
ARGS  ?=
# Tests on a real control plane wait more than they work; each has one of PLANES, of half a gigabyte and more.
PLANES ?= 3
REAL  := -n $(PLANES) --dist loadfile --no-loadscope-reorder

# Real programs may answer late on a busy machine: what failed is tried once more, and must hold then.
again = { echo "once more: what failed"; $(BIN)/pytest -q -n0 --last-failed --last-failed-no-failures none $(1); }

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

demo: .venv/.ready ## Watch nodes come and go in a cluster that exists only in memory, for 45 s; PROVIDER=aws
	@$(BIN)/karpy demo $(PROVIDER:%=--provider %) $(ARGS)

test: check ## Check everything, then run all tests, on all cores and in random order
	@[ "$$CI" != true ] || $(BIN)/karpy controlplane build --tools >/dev/null
	@echo "pytest"
	@$(BIN)/pytest -q -n auto $(ARGS)

check: .venv/.ready ## Check format, lint, types and layers
	@echo "ruff format" && $(BIN)/ruff format --quiet --check --output-format concise $(PATHS) || { echo "hint: make fix"; exit 1; }
	@echo "ruff check"  && $(BIN)/ruff check --quiet $(PATHS)
	@echo "mypy"        && $(BIN)/mypy --no-error-summary $(PATHS)
	@echo "lint-imports" && { out=$$($(BIN)/lint-imports 2>&1) || { echo "$$out"; exit 1; }; }

# Nothing but what the lock names is fetched: `uv` itself builds the wheel.
install-check: .venv/.ready ## Do what the Dockerfile does, and uvx, in an empty place; run the result
	@$(BIN)/uv lock --quiet --check || { echo "hint: make lock"; exit 1; }
	@$(BIN)/python -m tests.image
	@$(BIN)/python -m tests.package

image-check: .venv/.ready ## Build the image of Debian's packages, and run it read-only; needs buildah and root
	@$(BIN)/python -m tests.image.container

lock: .venv/.ready ## Lock the newest versions that pyproject.toml allows: uv.lock, deploy/
	@$(BIN)/python -m tests.tidy.lock

docs: .venv/.ready ## Build the site of docs/ into build/site; a link that leads nowhere is an error
	@$(BIN)/python -m tests.site

controlplane: .venv/.ready ## Build a real control plane, once: etcd, Kubernetes, KWOK; ten minutes
	@$(BIN)/karpy controlplane build

# Without the programs these tests are skipped and say so; in CI that is a failure.
contract: .venv/.ready ## Hold the embedded cluster to what a real API server does
	@$(BIN)/karpy controlplane build >/dev/null || [ "$$CI" != true ]
	@$(BIN)/pytest -q $(REAL) tests/contract $(ARGS) || $(call again,tests/contract)

e2e: .venv/.ready ## Run the tests that need a real control plane, Karpenter itself, and Helm
	@$(BIN)/karpy controlplane build >/dev/null || [ "$$CI" != true ]
	@$(BIN)/karpy controlplane build --peer >/dev/null || [ "$$CI" != true ]
	@$(BIN)/karpy controlplane build --tools >/dev/null || [ "$$CI" != true ]
	@$(BIN)/pytest -q $(REAL) tests/e2e $(ARGS) || $(call again,tests/e2e)

bench: .venv/.ready ## Measure the solver on the benchmark workloads
	@$(BIN)/python -m benchmarks $(ARGS)

bench-peer: .venv/.ready ## Measure Karpy beside Karpenter on a real control plane; an hour
	@$(BIN)/python -m benchmarks.peer $(ARGS)

fuzz: .venv/.ready ## Compare the solver with its reference on random clusters; SEEDS=1000
	@$(BIN)/python -m tests.fuzz --seeds $(SEEDS) $(ARGS)

fuzz-objects: .venv/.ready ## Run the operator among objects no schema foresaw, and see who is harmed; SEEDS=1000
	@$(BIN)/python -m tests.hostile --seeds $(SEEDS) $(ARGS)

swarm: .venv/.ready ## Run the operator through random trouble and see that all ends well; SEEDS=1000
	@$(BIN)/python -m tests.swarm --seeds $(SEEDS) $(ARGS)

soak: .venv/.ready ## Have 200,000 pods live shortly and see that memory does not grow; 40 s
	@$(BIN)/python -m tests.soak $(ARGS)

fix: .venv/.ready ## Format, mend what can be mended, write the generated pages anew
	@$(BIN)/ruff check --quiet --fix-only $(PATHS)
	@$(BIN)/ruff format --quiet $(PATHS)
	@$(BIN)/python -m tests.tidy.generate

clean: ## Remove everything that make and the tools have made
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .cache build dist
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.ready: pyproject.toml
	@python=; for each in $${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do \
	  $$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && python=$$each && break; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "error: Karpy needs Python 3.11 or newer, and there is none on the PATH"; \
	  echo; echo "hint: install one, or name it: make PYTHON=/path/to/python3.12 ..."; exit 1; \
	fi; \
	echo "preparing .venv with $$($$python --version)"; \
	[ -x $(BIN)/python ] || $$python -m venv .venv || { \
	  echo; echo "hint: on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

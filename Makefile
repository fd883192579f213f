# Every target works in a fresh clone: the first one that needs the environment makes it.

PYTHON ?= python3
ARGS ?=
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin

# Tests start many processes, and each would compile all sources anew where the environment forbids to keep bytecode.
unexport PYTHONDONTWRITEBYTECODE

# Twice quiet: pip reports errors and nothing else.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
N ?= 10000
.PHONY: help sim quick test soak fuzz bench lines mutants wrong-values field calibrate chip compare-official lint format docs dist clean

help: ## list the targets
	@while IFS= read -r line; do case "$$line" in \
	    [a-z]*:*'## '*) printf 'make %-17s%s\n' "$${line%%:*}" "$${line##*'## '}";; esac; done <$(firstword $(MAKEFILE_LIST))

# JAX compiles the Pallas examples for longer than they run: without the optimizations that these small sizes never repay.
QUICK_TO_COMPILE := --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true
sim: $(VENV)/test.stamp ## run the example kernels in simulation, and show what nkitools says of a kernel
	@XLA_FLAGS="$${XLA_FLAGS:-$(QUICK_TO_COMPILE)}" $(BIN)/nkitools demo $(ARGS)

# The rooms that are pure Python and NumPy, without the tests that start processes or import PyTorch or JAX; eight
# cases of each test: tests/quick.txt, which noxfile.py reads too.
quick: $(VENV)/test.stamp ## run the tests of the simulator alone, in about a minute
	$(BIN)/pytest @tests/quick.txt --numprocesses $(JOBS) --dist worksteal $(ARGS)

test: $(VENV)/test.stamp ## run the whole test-suite, on two cores (one test: ARGS="-k giou"; more cores: JOBS=8)
	$(BIN)/pytest --numprocesses $(JOBS) --dist loadfile $(ARGS)

soak: $(VENV)/test.stamp ## run property and fuzz tests with all of their cases; goes on where it was stopped
	$(BIN)/pytest -m soak --soak --timeout 3600 --numprocesses $(JOBS) --dist worksteal $(ARGS)

fuzz: $(VENV)/test.stamp ## run random programs in the simulator and beside an oracle: N=10000 (ARGS="--against careful --store fuzz.db")
	$(BIN)/python -m tests.fuzz --programs $(N) --workers $(JOBS) $(ARGS)

bench: $(VENV)/test.stamp ## time the simulator against NumPy
	$(BIN)/python -m benchmarks $(ARGS)

lines: $(VENV)/dev.stamp ## count the package's code, room by room
	$(BIN)/python -m benchmarks.code_lines $(ARGS)

mutants: $(VENV)/test.stamp ## make mistakes in the example kernels, and count what notices them (ARGS=--own-tests: their tests)
	$(BIN)/python -m benchmarks.mutants $(ARGS)

wrong-values: $(VENV)/test.stamp ## ask for an edit of each kernel whose values are wrong, and judge it (ARGS="--family modern --list FILE")
	$(BIN)/python -m benchmarks.wrong_values $(ARGS)

field: $(VENV)/test.stamp ## run a folder of tests and scripts of kernels as they are: SUITE=folder (options: ARGS="--jobs 2")
	$(BIN)/nkitools try $(SUITE) $(ARGS)

calibrate: $(VENV)/test.stamp ## fit the timing model on published kernels: SOURCES=folder of git directories (ARGS="--keep DIR")
	$(BIN)/python -m benchmarks.calibrate $(SOURCES) --fit $(ARGS)

chip: $(VENV)/test.stamp ## compare with published measurements of chips, in two minutes (ARGS=--all: all of them, and the docs' tables)
	$(BIN)/python -m benchmarks.chip --workers $(JOBS) $(ARGS)

compare-official: $(VENV)/test.stamp ## compare with AWS's own simulator, installed from AWS's index (Linux)
	$(BIN)/python -m benchmarks.official $(ARGS)

lint: $(VENV)/dev.stamp ## check style and types, change nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/dev.stamp ## bring the code into the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/dev.stamp ## build the documentation into docs/_build/html
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build/html
	@echo "open docs/_build/html/index.html"

dist: $(VENV)/dev.stamp ## build wheel, sdist, checksums and SBOM into dist, twice and compared (then: ARGS=smoke)
	$(BIN)/python -m release $(ARGS)

clean: ## remove whatever make has made, the environment included
	rm -rf $(VENV) .venv-official dist docs/_build docs/pictures docs/reference/calibration.md docs/reference/cheat_sheet.md docs/reference/chips.md docs/reference/coverage.md docs/reference/gallery.md docs/reference/instructions* docs/reference/known-faults.md docs/reference/options.md docs/reference/rules.md docs/reference/supported-versions.md
	rm -rf .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache .soak
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "nkitools needs Python 3.11 or later; '$(PYTHON)' is older, or is not there."; \
	    echo "Say which one to take: make PYTHON=python3.12 $(or $(MAKECMDGOALS),sim)"; exit 1; }
	@echo "making $(VENV) (this happens once)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	    echo "No environment could be made; on Debian and Ubuntu it takes: apt-get install python3-venv"; exit 1; }

# One stamp a set of packages: what has a stamp older than pyproject.toml is brought up to date.
$(VENV)/test.stamp: pyproject.toml | $(BIN)/python
	@echo "installing nkitools with what its tests need"
	@$(PIP_INSTALL) --upgrade 'pip>=25.1'
	@$(PIP_INSTALL) --editable '.[lsp,mcp,pallas,perfetto,test]' --group test
	@$(BIN)/python -m nkitools.dialects.stub_files >$(VENV)/stubs.log
	@touch $@

$(VENV)/dev.stamp: pyproject.toml $(VENV)/test.stamp
	@echo "installing the linters and what builds the documentation"
	@$(PIP_INSTALL) --editable '.[lsp,mcp,pallas,perfetto,test]' --group dev
	@touch $@

# .venv is made and filled on first use, and again only when what it is made from has changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST = $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal
# Processes that share the tests, one more than cores, since many tests wait; 0 runs them in make's own.
WORKERS ?= 3
# GiB: about 5 for the environment, the rest for the archives while they are unpacked.
DISK_GIB ?= 9
PEERS := openvino,ncnn,mnn
PEER_TESTS := tests/axes/compilers/test_openvino.py tests/axes/compilers/test_ncnn.py tests/axes/compilers/test_mnn.py
# One of several parts of `make test-all`, such as 1/4; empty for all.
PART ?=

.PHONY: help install quickstart predictor docs docs-run test test-ci test-peers test-all check clean

help:
	@echo 'make quickstart  run a small study and print its table (first use installs into .venv)'
	@echo 'make predictor   measure 108 training steps, fit a predictor, predict ten more and measure them'
	@echo 'make docs        build the site of the documentation into build/site'
	@echo 'make docs-run    run the pages that show what measuring prints, and write it into them'
	@echo 'make test        the tests that take seconds'
	@echo 'make test-ci     the tests that need more than pip installs, such as Chromium; at most 40 minutes'
	@echo 'make test-peers  the tests of compilers that are extras, which it installs into .venv in at most two minutes'
	@echo 'make test-all    every test; PART=1/4 to PART=4/4 run a quarter each'
	@echo 'make check       ruff, formatting, mypy and the tests'
	@echo 'make install     only create .venv'
	@echo 'make clean       remove .venv, caches and build outputs; results stay'
	@echo 'PYTHON=...       the interpreter for .venv, 3.11 or newer (now: $(PYTHON))'

install: $(STAMP)

$(STAMP): setup.cfg pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version 2>&1 || echo not there)."; \
	  echo "Name another interpreter: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@if ! ls -d $(VENV)/lib/python3*/site-packages/torch >/dev/null 2>&1; then \
	  free=$$(df -Pk . | awk 'NR == 2 { print int($$4 / 1048576) }'); \
	  echo "Installing into $(VENV), once. torch brings several GB with its CUDA libraries:"; \
	  echo "$(DISK_GIB) GiB of disk are needed here, $$free are free. This takes some minutes."; \
	  if [ "$$free" -lt $(DISK_GIB) ]; then \
	    echo "Too little disk. Free some, or try all the same: make DISK_GIB=0 $(MAKECMDGOALS)"; exit 1; fi; \
	else echo "Updating $(VENV): setup.cfg, pyproject.toml or constraints.txt has changed."; fi
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

quickstart: $(STAMP)
	@$(BIN)/dlas run experiments/quickstart/study.toml --out results/quickstart
	@$(BIN)/dlas table results/quickstart
	@$(BIN)/dlas compare results/quickstart --axis compiler
	@$(BIN)/dlas report results/quickstart

predictor: $(STAMP)
	@$(BIN)/dlas run experiments/training-digits/study.toml --out results/training-digits
	@rm -rf results/training-digits/predictor
	@$(BIN)/dlas fit additive results/training-digits --target latency_min_s --hold-out compression.level \
	  --to results/training-digits/predictor
	@$(BIN)/dlas predict results/training-digits/predictor experiments/training-digits/ahead.toml --out results/ahead
	@$(BIN)/dlas run experiments/training-digits/ahead.toml --out results/ahead
	@$(BIN)/dlas predict results/training-digits/predictor results/ahead

# Sphinx comes on first use. Warnings are errors.
docs: $(STAMP)
	@$(BIN)/python -c 'import myst_parser, pydata_sphinx_theme, sphinx_design' 2>/dev/null \
	  || $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@$(BIN)/python -m sphinx -W --keep-going -q -j auto -d build/doctrees docs build/site
	@echo 'The site: build/site/index.html'

docs-run: $(STAMP)
	@$(BIN)/python -m docs.run

test: $(STAMP)
	@$(PYTEST)

# No test starts after 35 minutes, and none takes more than five, on a cluster fifteen; those skipped say why.
test-ci: $(STAMP)
	@timeout 120 $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[ray,docs]' \
	  || echo 'Ray and Sphinx cannot be installed here: their tests are skipped'
	@$(PYTEST) -m ci -rs --session-timeout 2100

# Compilers that are extras stay in .venv, so that this comes after the other tests.
test-peers: $(STAMP)
	@if timeout 120 $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[$(PEERS)]'; \
	then $(PYTEST) -rs tests/contracts/test_compiler.py $(PEER_TESTS); \
	else echo "$(PEERS) cannot be installed here: their tests are skipped"; fi

test-all: $(STAMP)
	@$(PYTEST) -m '' $(if $(PART),--part='$(PART)')

check: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(PYTEST)

clean:
	rm -rf $(VENV) build dist *.egg-info .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

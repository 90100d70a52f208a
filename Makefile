# trueup: `make demo` shows what it does, `make test` checks all of it.
# Needs Python 3.11 or later and a POSIX shell; works with GNU make 3.81 and later.

SHELL = /bin/sh
.SUFFIXES:
.NOTPARALLEL:
.PHONY: help demo test lint types format bench docs docs-figures clean

# The Python that .venv is made with; empty: an existing .venv keeps its own, else tools/venv.sh looks for one.
PYTHON ?=
# Extras of trueup that the demo needs, comma-separated.
DEMO_EXTRAS =
# Test processes: a number, or auto for one per core (at most 8).
JOBS ?= auto
# More arguments for pytest, for instance PYTEST_ARGS="-k shrink -x".
PYTEST_ARGS ?=
# Benchmarks to run, and their arguments, for instance BENCH=growth BENCH_ARGS=--quick.
BENCH ?= first_step second_step alternatives peers growth
BENCH_ARGS ?=

export PYTHON DEMO_EXTRAS JOBS PYTEST_ARGS
unexport PYTHONHOME PYTHONPATH

VENV = sh tools/venv.sh
RUN = .venv/bin/python

help:
	@echo 'make demo     install trueup into .venv and run it on built-in data'
	@echo 'make test     ruff, mypy and every test; the last line says what could not run'
	@echo 'make lint     ruff check and ruff format --check'
	@echo 'make types    mypy'
	@echo 'make format   format the code and mend what ruff can mend'
	@echo 'make bench    run benchmarks/; BENCH=growth runs one, BENCH_ARGS=--quick tries them'
	@echo 'make docs     build the documentation into site (docs-figures: print its numbers, draw its pictures)'
	@echo 'make clean    remove .venv and caches'
	@echo ''
	@echo 'PYTHON=/path/to/python3.12 picks the Python; JOBS=2 the test processes; PYTEST_ARGS="-k name" the tests.'

demo:
	@$(VENV) base
	@echo 'trueup: running the demo ...'
	@$(RUN) -m trueup demo

test:
	@$(VENV) test
	@sh tools/test.sh

lint:
	@$(VENV) test
	@echo 'trueup: ruff check ...'
	@$(RUN) -m ruff check .
	@echo 'trueup: ruff format --check ...'
	@$(RUN) -m ruff format --check .

types:
	@$(VENV) test
	@echo 'trueup: mypy ...'
	@$(RUN) -m mypy

format:
	@$(VENV) test
	@echo 'trueup: ruff format ...'
	@$(RUN) -m ruff format .
	@echo 'trueup: ruff check --fix ...'
	@$(RUN) -m ruff check --fix .

bench:
	@$(VENV) bench
	@echo 'trueup: running benchmarks/ ($(BENCH)) ...'
	@for each in $(BENCH); do $(RUN) benchmarks/$$each.py $(BENCH_ARGS) || exit 1; done

docs:
	@$(VENV) base
	@sh tools/docs.sh

docs-figures:
	@$(VENV) test
	@echo 'trueup: printing the numbers of the documentation and drawing its pictures ...'
	@$(RUN) tools/docs_figures.py

clean:
	@echo 'trueup: removing .venv and caches ...'
	@rm -f .venv/.trueup-*
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist site
	@find . -name .git -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

# trueup: `make demo` shows what it does, `make test` checks all of it.
# Needs Python 3.11 or later and a POSIX shell; works with GNU make 3.81 and later.

SHELL = /bin/sh
.SUFFIXES:
.NOTPARALLEL:
.PHONY: evidence fuzz mutations coverage help demo test lint types format bench docs docs-figures test-lowest audit dist clean

# The Python that .venv is made with; empty: an existing .venv keeps its own, else tools/venv.sh looks for one.
PYTHON ?=
# Extras of trueup that the demo needs, comma-separated.
DEMO_EXTRAS =
# Test processes: a number, or auto for one per core (at most 8).
JOBS ?= auto
# More arguments for pytest, for instance PYTEST_ARGS="-k shrink -x".
PYTEST_ARGS ?=
# Benchmarks to run, and their arguments, for instance BENCH=growth BENCH_ARGS=--quick.
BENCH ?= first_step native second_step alternatives parts peers growth update rank shortcuts spark_overhead
BENCH_ARGS ?=

# For instance FUZZ_ARGS="--minutes 1", MUTATIONS_ARGS="--only gold".
FUZZ_ARGS ?=
# For instance EVIDENCE_ARGS="--quick --part ablation" or EVIDENCE_ARGS="--step first"; FULL=1 for the documentation.
EVIDENCE_ARGS ?=
FULL ?=
MUTATIONS_ARGS ?=

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
	@echo 'make evidence run all studies with few panels, and check every figure (20 minutes on two cores);'
	@echo '              EVIDENCE_ARGS="--step first" runs one; FULL=1 takes hours and writes docs/*-figures.md'
	@echo 'make docs     build the documentation into site (docs-figures: print its numbers, draw its pictures)'
	@echo 'make test-lowest   the tests that meet other libraries, with the lowest versions of these'
	@echo 'make audit    list versions and licences of all that each extra brings (SECURITY.md)'
	@echo 'make dist     build wheel and sdist into dist, and run the demo from the installed wheel'
	@echo 'make fuzz     ten minutes of random input over the whole public surface; it prints what it covered'
	@echo 'make mutations  change one thing at a time for the worse: a test must fail each time (about 15 minutes)'
	@echo 'make coverage every test, then the lines of src/trueup that none of them runs (of Spark: its driver)'
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

fuzz:
	@$(VENV) test
	@echo 'trueup: fuzzing ...'
	@$(RUN) tools/fuzz.py $(FUZZ_ARGS)

mutations:
	@$(VENV) test
	@echo 'trueup: trying mutations ...'
	@$(RUN) tools/mutations.py $(MUTATIONS_ARGS)

# Tests with a full disk leave no room for what coverage itself writes.
COVERAGE_WITHOUT = -k 'not full_disk and not all_is_written_or_nothing'
# Of Spark the driver counts, and tasks that tests run beside it; what only executors run is not seen.
coverage:
	@$(VENV) test
	@echo 'trueup: running all tests with coverage ...'
	@$(RUN) -m coverage erase
	@$(RUN) -m coverage run -m pytest -q -n $(JOBS) --maxprocesses 8 $(COVERAGE_WITHOUT) $(PYTEST_ARGS)
	@$(RUN) -m coverage combine -q
	@$(RUN) -m coverage report --include='src/trueup/*' --fail-under=95

evidence:
	@$(VENV) test
	@echo 'trueup: running studies ...'
	@$(RUN) -m evidence $(if $(filter-out 0,$(FULL)),--full) $(EVIDENCE_ARGS)

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

# A lowest version is what pyproject.toml says; Spark is tried too where there is Java.
test-lowest:
	@sh tools/lowest.sh

audit:
	@$(VENV) test
	@$(RUN) tools/audit.py

dist:
	@$(VENV) base
	@sh tools/dist.sh

clean:
	@echo 'trueup: removing .venv and caches ...'
	@rm -f .venv/.trueup-*
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* build dist site
	@find . -name .git -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

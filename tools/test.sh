#!/bin/sh
# Run every check, also after one has failed. The last line says what could not run (tests/conftest.py counts).

set -u
python=.venv/bin/python
report=.venv/.trueup-skips
said=.venv/.trueup-types
results=
status=0
rm -f "$report"
export TRUEUP_SKIP_REPORT="$report"
mypy=
trap 'kill $mypy 2>/dev/null; exit 130' INT
trap 'kill $mypy 2>/dev/null; exit 143' TERM HUP

# $1: name; the rest: the command. Keeps the exit status of the last check that failed.
check() {
    name=$1
    shift
    printf 'trueup: %s ...\n' "$name"
    if "$@"; then
        results="$results, $name ok"
    else
        status=$?
        results="$results, $name FAILED"
    fi
}

# Many short processes of the tests import it, also where Python is told to keep no compiled files.
"$python" -m compileall -q src
# mypy uses one processor: it runs beside the tests, and says what it found after them.
"$python" -m mypy >"$said" 2>&1 &
mypy=$!
result_of_mypy() {
    wait "$mypy"
    found=$?
    cat "$said"
    return "$found"
}

check 'ruff check' "$python" -m ruff check --quiet .
check 'ruff format' "$python" -m ruff format --check --quiet .
# PYTEST_ARGS is split into words by the shell as a user would type them.
eval "set -- ${PYTEST_ARGS:-}"
check 'pytest' "$python" -m pytest -n "${JOBS:-auto}" --maxprocesses 8 ${1+"$@"}
check 'mypy' result_of_mypy

printf 'trueup: %s\n' "${results#, }"
if [ -s "$report" ]; then
    cat "$report"
else
    echo 'trueup: COULD NOT COUNT what did not run: pytest ended too early'
fi
exit "$status"

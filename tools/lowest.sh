#!/bin/sh
# Run the tests that meet other libraries with the lowest versions that pyproject.toml allows, and the lowest Python.
# The environment is .venv/lowest; a stamp in it says from which pyproject.toml it was made.

set -u
place=.venv/lowest
python=${PYTHON:-python3.11}
# Numbers, frames, files, charts, the command line, states. The rest of the tests is about mathematics of our own.
tests='project/test_import answers/test_answers core/test_arrays io/test_encode io/test_frames io/test_files
    io/test_inputs io/test_question_data test_estimate cli/test_cli cli/test_commands result/test_save_and_load
    test_update datasets/test_datasets engines/disk/test_disk_intake engines/disk/test_disk_engine report/test_report
    report/test_page project/test_security'

say() { printf 'trueup: %s\n' "$*"; }
die() {
    say "$*" >&2
    exit 1
}
trap 'exit 130' INT
trap 'exit 143' TERM HUP

[ -f pyproject.toml ] || die "run this from the folder of pyproject.toml"
unset PYTHONHOME PYTHONPATH
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_USER=0

# Spark needs Java, and is large.
extras=cli,datasets,excel
if java -version >/dev/null 2>&1; then
    extras=$extras,spark
    tests="$tests engines/spark/test_spark_engine"
fi

if ! { echo "$extras" && cat pyproject.toml; } | cmp -s - "$place/.trueup-stamp"; then
    "$python" -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' ||
        die "the lowest versions run on Python 3.11 or 3.12: name one with make test-lowest PYTHON=/path/to/python3.11"
    say "installing the lowest versions into $place (this downloads what is not cached) ..."
    rm -rf "$place"
    mkdir -p .venv && "$python" -m venv "$place" || die "could not create $place"
    "$place/bin/python" tools/lowest.py >"$place/lowest.txt" || die "pyproject.toml has no lowest versions"
    "$place/bin/python" -m pip install -qq 'pip>=25.1' &&
        "$place/bin/python" -m pip install -qq -c "$place/lowest.txt" -e ".[$extras]" pandas polars \
            'pytest>=8.3' 'pytest-randomly>=3.16' 'pytest-xdist>=3.6' 'hypothesis>=6.120' ||
        die "the lowest versions cannot be installed together (the lines above say why)"
    { echo "$extras" && cat pyproject.toml; } >"$place/.trueup-stamp" || exit 1
fi

say "with $(tr '\n' ' ' <"$place/lowest.txt")..."
set --
for each in $tests; do
    [ -f "tests/$each.py" ] || die "tests/$each.py is not there: mend the list in tools/lowest.sh"
    set -- "$@" "tests/$each.py"
done
eval "set -- \"\$@\" ${PYTEST_ARGS:-}"
# Old versions of Spark leave sockets open, which is not ours to mend.
exec "$place/bin/python" -m pytest -q -W ignore::pytest.PytestUnraisableExceptionWarning -n "${JOBS:-auto}" --maxprocesses 8 "$@"

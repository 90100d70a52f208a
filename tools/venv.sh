#!/bin/sh
# Bring .venv to the wanted level: base (trueup alone), test or bench (plus that dependency group).
#
# A stamp .venv/.trueup-LEVEL holds everything the installation was made from: the Python, the folder, what
# was asked of pip, the version of trueup, pyproject.toml. While it is equal to what would be written now,
# nothing is done, and nothing needs the network. A stamp appears only after its installation has succeeded,
# and .trueup-busy lies in .venv while one is under way: a killed run is noticed, and .venv made anew.

set -u
level=${1:?usage: sh tools/venv.sh base, test or bench}
python=${PYTHON:-}
extras=${DEMO_EXTRAS:-}
busy=.venv/.trueup-busy

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_USER=0
unset PYTHONHOME PYTHONPATH __PYVENV_LAUNCHER__

say() { printf 'trueup: %s\n' "$*"; }
die() {
    say "$*" >&2
    exit 1
}

# Three lines: version, folder, and executable of the Python behind any virtual environment.
# Fails for a Python that does not start, is too old, or cannot make virtual environments.
facts='
import os, sys
if sys.version_info < (3, 11):
    sys.exit(1)
import ensurepip, venv
base = getattr(sys, "_base_executable", None) or sys.executable
for text in (".".join(map(str, sys.version_info[:3])), sys.base_prefix, base):
    sys.stdout.buffer.write(os.fsencode(text) + b"\n")
'
ask() { "$1" -I -c "$facts" 2>/dev/null; }
line() { printf '%s\n' "$2" | sed -n "$1p"; }

find_python() {
    if [ -n "$python" ]; then
        found=$(ask "$python") && return 0
        die "PYTHON=$python is not a working Python 3.11 or later that can make virtual environments (module venv)"
    fi
    for candidate in python3.13 python3.12 python3.11 python3; do
        found=$(ask "$candidate") && return 0
    done
    die "no working Python 3.11 or later (with venv) among python3.13, python3.12, python3.11, python3: install one, or name it with make PYTHON=/path/to/python3"
}

# What the stamp of a level must say. $1: level; $2: facts about the Python.
stamp() {
    line 1,2 "$2"
    pwd -P
    echo "$1 [$extras]"
    grep '^__version__' src/trueup/__init__.py
    cat pyproject.toml
}
is_current() { [ -f ".venv/.trueup-$1" ] && stamp "$1" "$have" | cmp -s - ".venv/.trueup-$1"; }

# Stamps go first: a deletion that is cut short must not leave one behind.
remove_venv() {
    rm -f .venv/.trueup-base .venv/.trueup-test .venv/.trueup-bench .venv/.trueup-made
    rm -rf .venv || die "cannot remove .venv"
}

make_venv() {
    find_python
    say "creating .venv with Python $(line 1 "$found") ..."
    remove_venv
    mkdir .venv && : >"$busy" || die "cannot write here: $(pwd)"
    "$(line 3 "$found")" -m venv .venv || die "could not create .venv (the lines above say why)"
    have=$(ask .venv/bin/python) || die "the Python in the new .venv does not run"
    say "updating pip in .venv ..."
    .venv/bin/python -m pip install -qq 'pip>=25.1' ||
        die "could not update pip (is there a network?); try again with the same command"
    # The folder is written down because a virtual environment does not survive being moved.
    { line 1,2 "$have" && pwd -P; } >.venv/.trueup-new && mv .venv/.trueup-new .venv/.trueup-made || exit 1
    rm -f "$busy"
}

# Whether .venv can be kept: finished, in its place, with a Python that still is the one it was made with.
is_usable() {
    [ -f .venv/.trueup-made ] && [ ! -e "$busy" ] || return 1
    have=$(ask .venv/bin/python) || return 1
    { line 1,2 "$have" && pwd -P; } | cmp -s - .venv/.trueup-made || return 1
    [ -z "$python" ] && return 0
    find_python
    [ "$(line 1,2 "$found")" = "$(line 1,2 "$have")" ]
}

trap 'exit 130' INT
trap 'exit 143' TERM HUP

case $level in
base | test | bench) ;;
*) die "unknown level $level: base, test or bench" ;;
esac
[ -f pyproject.toml ] || die "run this from the folder of pyproject.toml"

if ! is_usable; then
    if [ -d .venv ]; then
        say "the present .venv is unfinished, was moved, or has another Python: replacing it"
    fi
    make_venv
fi

is_current "$level" && exit 0

# A level that is there and current is asked for again, so that pip keeps all of them consistent.
set -- -e ".${extras:+[$extras]}"
levels=$level
for other in test bench; do
    if [ "$other" = "$level" ]; then
        set -- "$@" --group "$other"
    elif is_current "$other"; then
        set -- "$@" --group "$other"
        levels="$levels $other"
    fi
done
[ "$level" = base ] || levels="$levels base"

case $level in
base) say "installing trueup into .venv (this downloads what is not cached) ..." ;;
*) say "installing trueup and its $level tools into .venv (this downloads what is not cached) ..." ;;
esac
: >"$busy"
if ! .venv/bin/python -m pip install -qq "$@"; then
    # pip fetches everything before it changes anything: a failure of its own leaves .venv as it was.
    rm -f "$busy"
    die "pip could not install (the lines above say why); if that was the network, the same command continues"
fi
rm -f .venv/.trueup-base .venv/.trueup-test .venv/.trueup-bench
for name in $levels; do
    stamp "$name" "$have" >.venv/.trueup-new && mv .venv/.trueup-new ".venv/.trueup-$name" || exit 1
done
rm -f "$busy"

#!/bin/sh
# Build wheel and sdist into dist/, install the wheel into an environment of its own, and run the demo from there.

set -u
python=${PYTHON:-.venv/bin/python}

say() { printf 'trueup: %s\n' "$*"; }
die() {
    say "$*" >&2
    exit 1
}
trap 'exit 130' INT
trap 'exit 143' TERM HUP
trap 'rm -rf "${place:-}"' EXIT

[ -f pyproject.toml ] || die "run this from the folder of pyproject.toml"
unset PYTHONHOME PYTHONPATH
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
place=$(mktemp -d) || exit 1

say "building wheel and sdist ..."
"$python" -m venv "$place/build" && "$place/build/bin/python" -m pip install -qq 'build>=1.2' ||
    die "could not install the build tools (the lines above say why; is there a network?)"
rm -rf dist
# The wheel is built from the sdist, so that both are known to be whole.
"$place/build/bin/python" -m build --outdir dist . >"$place/log" 2>&1 || {
    cat "$place/log" >&2
    die "the build failed"
}

say "installing the wheel into a clean environment ..."
"$python" -m venv "$place/clean" && "$place/clean/bin/python" -m pip install -qq dist/*.whl ||
    die "could not install the wheel (the lines above say why)"

say "running it ..."
wheel=$(basename dist/*.whl)
cd "$place" || exit 1
found=$("$place/clean/bin/trueup" --version) || die "trueup --version failed"
case $wheel in
trueup-"${found#trueup }"-*) ;;
*) die "the wheel is $wheel, but says it is $found" ;;
esac
"$place/clean/bin/trueup" demo || die "trueup demo failed"
cd "$OLDPWD" || exit 1

say "built and tried $found:"
for file in dist/*; do
    printf '  %s (%s bytes)\n' "$file" "$(wc -c <"$file" | tr -d ' ')"
done

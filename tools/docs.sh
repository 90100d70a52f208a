#!/bin/sh
# Build the documentation into site/. Warnings are errors; nothing is read from the network but the packages of the
# first time. A stamp in .venv says from which pyproject.toml these were installed.

set -u
python=.venv/bin/python
stamp=.venv/.trueup-docs

say() { printf 'trueup: %s\n' "$*"; }
die() {
    say "$*" >&2
    exit 1
}
trap 'exit 130' INT
trap 'exit 143' TERM HUP

[ -f mkdocs.yml ] || die "run this from the folder of mkdocs.yml"
if ! cmp -s pyproject.toml "$stamp" || ! "$python" -c 'import mkdocs, material, latex2mathml' 2>/dev/null; then
    say "installing the documentation tools into .venv (this downloads what is not cached) ..."
    rm -f "$stamp"
    "$python" -m pip install -qq --group docs ||
        die "pip could not install (the lines above say why); if that was the network, the same command continues"
    cp pyproject.toml "$stamp" || exit 1
fi

say "building the documentation ..."
# The theme advertises its successor on every run.
NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs build --strict --quiet || die "the documentation has mistakes (see above)"

# A page that asks for something from elsewhere would be broken without a network.
if grep -rlE '(src|<link[^>]*href)="(https?:)?//' site --include='*.html' >/dev/null; then
    grep -rlE '(src|<link[^>]*href)="(https?:)?//' site --include='*.html' | head -3 >&2
    die "these pages load something from the network"
fi
say "the documentation is in the folder site: open site/index.html"

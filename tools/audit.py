"""List what trueup brings along, extra by extra: exact versions and licences of everything that is installed for it.

Ends with 1 where a licence is not among those that may be used freely with ours (`ALLOWED`), where one is not
stated, or where a package is not installed that an extra asks for. It asks no network. Known holes are looked up too
if a list of them is given, a JSON file as OSV publishes it: {"package": {"fixed": "1.2.3", "id": "..."}, ...}.
"""  # noqa: INP001  a script

from __future__ import annotations

import argparse
import json
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = "trueup"
# By their short names, and as they are called in classifiers and old headers. What is left of the text of a licence
# after these words must not name another one.
ALLOWED = (
    "apache-2.0", "apache software license", "apache license", "apache 2.0", "apache",
    "mit", "mit license", "mit-0", "mit-cmu", "hpnd",
    "bsd", "bsd license", "bsd-2-clause", "bsd-3-clause", "0bsd", "new bsd", "bsd 3-clause",
    "isc", "isc license (iscl)", "zlib", "cc0-1.0", "unlicense",
    "psf-2.0", "python software foundation license", "python-2.0",
    "mpl-2.0", "mozilla public license 2.0 (mpl 2.0)",
    "gpl-3.0-or-later with gcc-exception-3.1", "ofl-1.1",
)  # fmt: skip
SHORT = 60


def normal(name: str) -> str:
    """Return the name of a package as the index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(package: str, extra: str) -> list[str]:
    """Return the names of what an installed package asks for, with an extra or without."""
    from packaging.requirements import Requirement

    found = []
    for line in metadata.requires(package) or ():
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
            found += [wanted.name, *(f"{wanted.name}[{each}]" for each in sorted(wanted.extras))]
    return found


def closure(extra: str) -> tuple[dict[str, str], list[str]]:
    """Return the versions of all that an extra brings, by name, and what of it is not installed."""
    versions: dict[str, str] = {}
    missing: list[str] = []
    seen, left = set(), [ROOT, f"{ROOT}[{extra}]"]
    while left:
        each = left.pop()
        if each in seen:
            continue
        seen.add(each)
        name, _, option = each.removesuffix("]").partition("[")
        try:
            versions[normal(name)] = metadata.version(name)
            left += requirements(name, option)
        except metadata.PackageNotFoundError:
            missing.append(name)
    versions.pop(ROOT, None)
    return versions, sorted(set(missing))


def licence(name: str) -> str:
    """Return what a package says of its licence, in short."""
    about: Any = metadata.metadata(name)
    if about["License-Expression"]:
        return str(about["License-Expression"])
    classed = [
        line.rpartition(" :: ")[2]
        for line in about.get_all("Classifier") or ()
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    ]
    if classed:
        return " AND ".join(classed)
    text = str(about["License"] or "").strip()
    return text.partition("\n")[0][:SHORT] or "not stated"


def is_allowed(text: str) -> bool:
    """Tell whether each part of a licence is one that may be used; of several to choose from, one will do.

    >>> is_allowed("Apache-2.0 OR GPL-2.0"), is_allowed("MIT AND GPL-3.0"), is_allowed("not stated")
    (True, False, False)
    """
    plain = text.lower()
    if plain in ALLOWED:
        return True
    parts = re.split(r"\s+and\s+", plain)
    for part in parts:
        choices = re.split(r"\s+or\s+", part.strip("() "))
        if not any(choice.strip("() ") in ALLOWED for choice in choices):
            return False
    return True


def holes(versions: dict[str, str], known: dict[str, Any]) -> list[str]:
    """Return what is known against these versions."""
    from packaging.version import Version

    return [
        f"{name} {version}: {known[name]['id']}, mended in {known[name]['fixed']}"
        for name, version in versions.items()
        if name in known and Version(version) < Version(known[name]["fixed"])
    ]


def main(arguments: list[str] | None = None) -> int:
    """Print the list, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--holes", type=Path, help="JSON file of known holes")
    parser.add_argument(
        "--extras", default="files,excel,report,cli,datasets", help="what to look at"
    )
    chosen = parser.parse_args(arguments)
    known = json.loads(chosen.holes.read_text("utf-8")) if chosen.holes else {}
    faults: list[str] = []
    for extra in chosen.extras.split(","):
        versions, missing = closure(extra)
        sys.stdout.write(f"{ROOT}[{extra}]\n")
        for name, version in sorted(versions.items()):
            text = licence(name)
            sys.stdout.write(f"  {name:<28} {version:<14} {text}\n")
            if not is_allowed(text):
                faults.append(
                    f"{name} {version}: the licence {text!r} is not among those that are allowed"
                )
        faults += [f"{name}: not installed, so that nothing can be said of it" for name in missing]
        faults += holes(versions, known)
    for fault in sorted(set(faults)):
        sys.stdout.write(f"trueup: {fault}\n")
    what = "licences and known holes" if known else "licences (no list of known holes was given)"
    sys.stdout.write(f"trueup: looked at {what}: {'not fine' if faults else 'fine'}\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

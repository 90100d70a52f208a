"""Print the lowest versions that pyproject.toml promises to work with, one per line, for pip.

`numpy>=2.0` becomes `numpy==2.0`: a floor is a release, so that it can be tried. Of the groups only data frame
libraries are of interest, which tests bring along and users may have.
"""  # noqa: INP001  a script

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

FRAMES = ("pandas", "polars")
# A name, perhaps extras, and the lowest version.
FLOOR = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?>=([0-9][0-9a-z.]*)")


def floors(pyproject: str) -> dict[str, str]:
    """Return the lowest version of each package, by name.

    Raises
    ------
    ValueError
        When a requirement has no lowest version, or two of them.
    """
    about = tomllib.loads(pyproject)
    project = about["project"]
    wanted = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    for each in about["dependency-groups"]["test"]:
        if each.startswith(FRAMES) and "stubs" not in each:
            wanted.append(each)
    found: dict[str, str] = {}
    for each in wanted:
        if each.startswith(f"{project['name']}["):
            continue
        match = FLOOR.match(each)
        if match is None:
            raise ValueError(f"{each}: has no lowest version; write name>=version.")
        name, version = match[1].lower(), match[2]
        if found.setdefault(name, version) != version:
            raise ValueError(f"{name}: has two lowest versions, {found[name]} and {version}.")
    return found


if __name__ == "__main__":
    pyproject = Path(__file__).parents[1] / "pyproject.toml"
    for name, version in floors(pyproject.read_text("utf-8")).items():
        sys.stdout.write(f"{name}=={version}\n")

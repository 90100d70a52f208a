"""Print how public crowds err, beside the constants of the prior: `python -m evidence.crowds`."""

from __future__ import annotations

from evidence.crowds import Crowds, table_lines

if __name__ == "__main__":
    print(*table_lines(Crowds.read()), sep="\n")

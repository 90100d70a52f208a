"""Print how public crowds err, beside the constants of the prior: `python -m evidence.crowds`."""

from __future__ import annotations

from evidence.crowds import Crowds, figures

if __name__ == "__main__":
    print(f"{'figure':<26}{'table':>10}  prior (full likelihood)")
    for name, found, prior in figures(Crowds.read()):
        print(f"{name:<26}{found:>10}  {prior}")

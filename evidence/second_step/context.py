"""Settings and results that the parts of the study share."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trueup
from evidence.second_step import rules
from evidence.sub_panels import load_source
from trueup.algorithms import CATD
from trueup.errors import TrueupError
from trueup.study.harness import SecondStep, StudyCell, StudyGrid, study
from trueup.study.sources import Sampled, Synthetic
from trueup.study.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from evidence.points import Point
    from trueup.algorithms import Algorithm
    from trueup.study.sources import PanelSource

#: Simulated true values, by name: options of `trueup.simulate`.
TRUTHS: dict[str, dict[str, Any]] = {
    "constant": {"truth": "constant"},
    "N(0, 0.09)": {"truth_scale": 0.3},
    "N(0, 1)": {},
    "N(0, 25)": {"truth_scale": 5.0},
    "three clusters": {"truth": "clustered"},
    "two points": {"truth": "two_points"},
    "Student t2": {"truth": "heavy"},
    "exponential": {"truth": "exponential", "truth_scale": 2.0},
    "90% zero": {"truth": "mostly_zero"},
}
#: Standard deviation of the biases of simulated workers.
BIAS = 0.3
#: The real data sets.
SETS = ("groceries", "dots", "pies", "calories", "population", "emotions", "nflx_public")
CATD_PAPER = CATD(preset="paper")
# Source files on which finished cells depend.
RESULTS_FROM = (
    "algorithms/", "answers/", "core/", "datasets/", "engines/", "pipeline/", "shrinkage/", "variance/",
    "study/harness.py", "study/sources.py",
)  # fmt: skip


def fingerprint() -> str:
    """Return a short hash of the code that produces the results."""
    home = Path(trueup.__file__).parent
    code = sha256()
    for path in sorted(home.rglob("*.py")):
        name = path.relative_to(home).as_posix()
        if "/" not in name or name.startswith(RESULTS_FROM):
            code.update(name.encode() + path.read_bytes())
    study = Path(__file__).parents[1]
    own = (*sorted(study.glob("first_step/*.py")), *sorted(study.glob("intervals/*.py")))
    for path in (study / "second_step" / "designs.py", *own):
        code.update(path.read_bytes())
    return code.hexdigest()[:10]


@dataclass
class Context:
    """Settings and results of one run.

    Attributes
    ----------
    samples : int
        Number of panels per cell.
    rules : sequence of SecondStep
        Second steps to evaluate on the synthetic grid and on real data.
    cells : list
        Part and result of each cell of the grids.
    rows : dict
        Tidy tables of the other parts, by name.
    points : list of Point
        Figures with their target ranges.
    code : str
        Hash of the code that produces the results.
    processes : int
        Number of processes for the tasks of a part.
    """

    out: Path
    samples: int = 200
    quick: bool = False
    data: str | None = None
    seed: int = 0
    progress: bool = True
    rules: Sequence[SecondStep] = field(default_factory=lambda: rules.RULES)
    cells: list[tuple[str, StudyCell]] = field(default_factory=list)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    code: str = field(default_factory=fingerprint)
    processes: int = 2
    _loaded: dict[str, Sampled | TrueupError] = field(default_factory=dict)

    @property
    def finished(self) -> Path:
        """The folder of finished cells; a new one whenever the code has changed."""
        return self.out / f"finished-{self.code}"

    def cells_of(
        self,
        part: str,
        sources: Sequence[PanelSource],
        sizes: Sequence[tuple[int, int]],
        methods: Sequence[str | Algorithm],
        steps: Sequence[SecondStep] | None = None,
        *,
        samples: int | None = None,
        fewer: dict[str, int] | None = None,
    ) -> list[StudyCell]:
        """Run a grid; keep and return its cells."""
        grid = StudyGrid(
            sources=sources,
            sizes=sizes,
            methods=methods,
            steps=self.rules if steps is None else steps,
            samples=samples or self.samples,
            fewer=fewer,
            seed=self.seed,
        )
        cells = study(grid, out=self.finished, name=part, progress=self.progress)
        self.cells += [(part, cell) for cell in cells]
        return cells

    def rows_of(
        self, part: str, tasks: Iterable[tuple[str, Callable[[], list[dict[str, Any]]]]]
    ) -> list[dict[str, Any]]:
        """Run tasks that return rows, except finished ones; keep and return the rows."""
        store = Store(self.finished, part)
        rows: list[dict[str, Any]] = []
        for name, task in tasks:
            key = f"{name}, {self.samples} samples, seed {self.seed}"
            new = store.find(key)
            if new is None:
                new = task()
                store.keep(key, new)
            rows += new
        self.rows[part] = rows
        return rows

    def synthetic(
        self, names: Iterable[str] | None = None, *, bias: float = BIAS
    ) -> list[Synthetic]:
        """Return simulators of some truths, by default of all."""
        names = TRUTHS if names is None else names
        return [Synthetic(name, TRUTHS[name] | ({"bias": bias} if bias else {})) for name in names]

    def real(self, name: str) -> Sampled:
        """Return a data set, restricted to the questions with known truth."""
        if name not in self._loaded:
            try:
                self._loaded[name] = load_source(name, self.data)
            except TrueupError as error:
                self._loaded[name] = error
        loaded = self._loaded[name]
        if isinstance(loaded, TrueupError):
            raise loaded
        return loaded

    def available(self, names: Iterable[str]) -> tuple[list[Sampled], str]:
        """Return the available data sets, and a sentence about the others."""
        sources, missing = [], []
        for name in names:
            try:
                sources.append(self.real(name))
            except TrueupError:
                missing.append(name)
        sentence = f"Not run, because the data are not available: {', '.join(missing)}."
        return sources, sentence if missing else ""

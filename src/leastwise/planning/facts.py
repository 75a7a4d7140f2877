"""What a plan has to know of the data and the parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from leastwise.planning.work import Work
from leastwise.selection.plan import SEARCH_ROWS, count_rows_to_search, task_rows_to_search


@dataclass(frozen=True)
class Facts:
    """Sizes and choices.

    Attributes
    ----------
    family : {"single", "machine", "tasks", "task machine", "labels"}
        Which solvers there are.
    asked : str
        The parameter ``solver``.
    n, d, c, b : int
        Rows, features, outputs, basis functions.
    itemsize : int
        Bytes of a number.
    square : bool
        Every row is a centre.
    cuttable : bool
        Centres may be fewer than they are: they are rows, and kernels are computed.
    sums : bool
        Centres are few by themselves, and kernels are computed: sums over rows will do.
    iterates : bool
        Conjugate gradients are possible.
    few : bool
        Tasks share few basis functions, so that the block-arrow system applies.
    alike : bool
        It would apply if there were few.
    blocks : int
        Classes with centres of their own, or 1.
    norm, layers, search_rows, max_passes
        As in the estimators.
    sigmas, alphas, sharings, options : int
        Values to try; options are weights of a linear part, and spreads of intercepts.
    grows, cautious, chooses : bool
        Whether alphas are refined, simple models preferred, and anything is held out at all.
    tasks, labels : int
        How many there are.
    folds, largest : int
        Number of folds, and rows of the largest.
    exact : bool
        Equal weights, and labels that are all known: a few alphas can be judged by Cholesky factors.
    rival : int
        Features of a linear model that iterations have to beat; 0 for none.
    pairs : bool
        There is a table of all pairs of labels.
    stored : int
        Numbers of a sparse row, with their places; 0 where all features are there.
    """

    family: str
    asked: str
    n: int
    d: int
    c: int
    b: int
    itemsize: int = 8
    square: bool = True
    cuttable: bool = True
    sums: bool = False
    iterates: bool = False
    few: bool = False
    alike: bool = False
    blocks: int = 1
    norm: str = "function"
    layers: int = 1
    search_rows: Any = "auto"
    max_passes: int = 100
    sigmas: int = 6
    alphas: int = 8
    sharings: int = 1
    options: int = 1
    grows: bool = True
    cautious: bool = False
    chooses: bool = True
    tasks: int = 1
    labels: int = 1
    folds: int = 0
    largest: int = 1
    exact: bool = True
    rival: int = 0
    pairs: bool = False
    stored: int = 0

    @property
    def width(self) -> int:
        """Numbers of a row."""
        return self.stored or self.d

    @property
    def widths(self) -> list[int]:
        """Basis functions of every block."""
        return [max(1, self.b // self.blocks)] * self.blocks

    def with_centers(self, count: int) -> Facts:
        """The same with so many centres, for each class where classes have their own."""
        b = min(self.n, count * self.blocks)
        return replace(self, b=b, square=False, sums=self.cuttable, iterates=False, few=self.alike)

    def searched(self, solver: str) -> tuple[int, int]:
        """Rows that the search is made on, and basis functions there."""
        wish = self.search_rows
        if solver in ("dual", "arrow") or (solver == "krylov" and self.family == "task machine"):
            m = task_rows_to_search(self.b, self.n, wish, solver == "arrow")
        elif solver in ("krylov", "moments", "sgd", "cg"):
            m = SEARCH_ROWS if wish == "auto" or (wish is None and solver == "cg") else wish or self.n
        else:
            m = count_rows_to_search(self.widths, self.square, self.n, wish)
        m = min(int(m), self.n)
        return m, m if self.square or solver in ("krylov", "cg") else min(self.b, m)


@dataclass(frozen=True)
class Stage:
    """One step of a fit, before it is known how fast the machine is."""

    what: str
    rows: int
    times: float
    work: Work
    peak_bytes: float

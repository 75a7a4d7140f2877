"""Data sizes and parameters that a plan depends on.

Steps of fits of a single task: by factors, by sums over rows, by descent, by iterations.

Steps of fits of many tasks and many labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from leastwise.linalg.logistic import FACTOR
from leastwise.problem.basis import CHUNK, SUM_CHUNK
from leastwise.solvers.arrow import CHUNK as TASK_CHUNK
from leastwise.solvers.moments import SAMPLE_ROWS
from leastwise.solvers.work import (
    POINT_PASSES,
    SEARCH_ROWS,
    SETTLE_NUMBERS,
    SETTLE_ROWS,
    STAND_IN,
    Work,
    count_rows_to_search,
    eigen,
    factor,
    folds_to_hold_out,
    inverse,
    judged,
    kernel,
    kernel_budget,
    points,
    preconditioner_rank,
    rows_to_refine,
    search_bytes,
    singular,
    task_rows_to_search,
)
from leastwise.utils.resources import available_memory, block_bytes


@dataclass(frozen=True)
class ProblemSize:
    """The size of a problem, from data or from a shape alone.

    Attributes
    ----------
    n, d, c : int
        Rows, features, outputs.
    itemsize : int
        Bytes of a number.
    distinct : int
        Number of distinct rows; 0 if unknown.
    folds, largest : int
        Number of folds, and rows of the largest.
    exact : bool
        Whether weights are equal and all labels known.
    tasks, labels : int
    stored : int
        Numbers of a sparse row, including their indices; 0 for dense rows.
    """

    n: int
    d: int
    c: int
    itemsize: int = 8
    distinct: int = 0
    folds: int = 0
    largest: int = 1
    exact: bool = True
    tasks: int = 1
    labels: int = 1
    stored: int = 0


@dataclass(frozen=True)
class Facts:
    """Sizes and choices.

    Attributes
    ----------
    family : {"single", "machine", "tasks", "task machine", "labels", "logistic", "task logistic"}
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
        Whether the number of centres can be reduced: they are rows, and kernels are computed.
    sums : bool
        Whether sums over rows are possible: there are few centres, and kernels are computed.
    iterates : bool
        Conjugate gradients are possible.
    few : bool
        Whether there are few basis functions, so that the block-arrow system applies.
    alike : bool
        Whether it would apply with few basis functions.
    blocks : int
        Number of classes with their own centres, or 1.
    norm, layers, search_rows, max_passes
        As in the estimators.
    sigmas, alphas, sharings, options : int
        Values to try; options are weights of a linear part, and variance ratios of intercepts.
    grows, cautious, chooses : bool
        Whether alphas are refined, simple models preferred, and anything is held out at all.
    tasks, labels : int
        How many there are.
    folds, largest : int
        Number of folds, and rows of the largest.
    exact : bool
        Whether weights are equal and all labels known: a few alphas can then be evaluated by Cholesky factors.
    rival : int
        Features of a linear model that the iterative model is compared with; 0 for none.
    pairs : bool
        Whether a table of all pairs of labels is needed.
    stored : int
        Numbers of a sparse row, including their indices; 0 for dense rows.
    classes : bool
        Whether it is a classification.
    coarse : bool
        Whether the tolerance lets iterations use single precision.
    candidates : int
        Scales times kernels that are compared on some rows before the search; 0 if the inputs are given.
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
    classes: bool = True
    coarse: bool = False
    candidates: int = 0

    @property
    def width(self) -> int:
        """Numbers of a row."""
        return self.stored or self.d

    @property
    def widths(self) -> list[int]:
        """Basis functions of every block."""
        return [max(1, self.b // self.blocks)] * self.blocks

    def with_centers(self, count: int) -> Facts:
        """The same with this number of centres, per class if classes have their own."""
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
    """One step of a fit, without times."""

    what: str
    rows: int
    times: float
    work: Work
    peak_bytes: float


#: Average number of alphas evaluated in a refinement, and of sigmas beyond the initial grid.
REFINED, BEYOND = 4.0, 0.5
#: Arrays of the size of the design matrix, by method: measured peaks, see benchmarks/plan.py.
SPECTRAL, DESIGN, FACTORED, SOLVED = 6.5, 12.0, 3.5, 3.0
#: The same if every class has its own centres.
BY_CLASS = 9.5
#: Typical numbers of conjugate gradient iterations and gradient descent passes.
ITERATIONS, PASSES = 15.0, 40.0


#: Rows on which candidates for the inputs are compared, and the share of a whole search that is left once a search
#: starts from the best of them: for classes, and for values with their linear parts and intercepts.
COMPARED = (300, 1000)
LEFT_TO_SEARCH = {True: 0.12, False: 0.5}
#: Passes over the numbers of all rows: to read them, and to scale them for each candidate.
READ, SCALED = 300.0, 250.0
#: Time and memory of a linear part beside the kernel, relative to the kernel alone, where alpha is chosen last.
WITH_LINEAR_PART = {"choose alpha": (2.0, 1.7), "iterations": (2.2, 1.0)}


def complete_stages(f: Facts, solver: str, stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """The steps that all solvers share as well: the inputs are read and chosen first, held-out scores stored last.

    The choice among solvers leaves them out.
    """
    read = Work(numbers=READ * f.n * f.width + (1 + f.classes) * POINT_PASSES * f.n * f.c, calls=8000)
    first = [Stage("read", f.n, 1, read, 2.0 * f.itemsize * f.n * f.width)]
    if f.candidates:
        first.append(choice_of_inputs(f))
        stages = tuple(continued(stage, LEFT_TO_SEARCH[f.classes]) for stage in stages)
    if f.options > 1 and "task" not in f.family:
        stages = tuple(with_linear_part(stage) for stage in stages)
    return (*first, *stages, *([unseen_tasks(f, solver)] if f.chooses and "task" in f.family else []))


def continued(stage: Stage, left: float) -> Stage:
    """A search that starts from a known point; other steps as they are."""
    return replace(stage, work=stage.work * left, times=stage.times * left) if stage.what == "search" else stage


def with_linear_part(stage: Stage) -> Stage:
    """The step with a linear part beside the kernel."""
    longer, larger = WITH_LINEAR_PART.get(stage.what, (1.0, 1.0))
    return replace(stage, work=stage.work * longer, peak_bytes=stage.peak_bytes * larger)


def choice_of_inputs(f: Facts) -> Stage:
    """Scales and kernels, compared on few rows, and the best of each kernel on more."""
    few, more = (min(f.n, rows) for rows in COMPARED)
    part = replace(f, square=True, n=few)
    one = dual_search(part, few) if "task" in f.family else first_search(part, few, few, True)
    again = by_factors(f, more, 6 * min(SETTLED, f.sharings)) * (2.0 * (more > few))
    scaled = Work(numbers=SCALED * f.n * f.width) * f.candidates
    room = (SPECTRAL + 2) * f.itemsize * more**2 + 2.0 * f.itemsize * f.n * f.width
    harder = 2.0 if "task" in f.family and not f.classes else 1.0  # linear parts and intercepts are tried as well
    work = (one.work * (0.3 * f.candidates) + again) * harder + scaled
    return Stage("choose inputs", more, f.candidates, work, room)


def unseen_tasks(f: Facts, solver: str) -> Stage:
    """Scores of every task without its own rows, for the calibration of tasks that training does not have."""
    if solver == "arrow":
        once = kernel(f.n, f.b, f.width) + Work(products=4 * f.n * f.b**2, numbers=8 * f.n * f.b, calls=20 * f.tasks)
        return Stage("calibration", f.n, 1, once * 5, 0.0)
    rows = f.n if solver == "dual" else f.searched(solver)[0]
    return Stage("calibration", rows, 1, (factor(rows) + inverse(rows)) * 2.2, f.itemsize * 3.0 * rows**2)


def direct(f: Facts) -> list[Stage]:
    """Eigendecompositions or singular values on some rows, then factors on all."""
    if not f.chooses:
        return [solve(f)]
    given = f.sigmas == f.alphas == 1 and not f.grows  # nothing to search
    m, k = (f.n, f.b) if given else f.searched("cholesky")
    stages = [search(f, m, k)]
    if m < f.n:
        stages.append(refinement(f, m))
    return [*stages, solve(f)]


def search(f: Facts, m: int, k: int, square: bool | None = None) -> Stage:
    """All sigmas with all alphas on some rows."""
    square = f.square if square is None else square
    tries = f.sigmas + beyond(f) + (f.options - 1) + f.cautious
    again = f.grows * (1 + (f.options > 1) + f.cautious)
    few = f.alphas <= 5 and square and f.exact and f.largest <= max(m / 50, 2)
    each = by_factors(f, m, f.alphas) if few else spectrum(f, m, k, f.alphas, square)
    fine = by_factors(f, m, 3) if square and f.exact and f.largest <= max(m / 50, 2) else spectrum(f, m, k, 3, square)
    values = kernel(m, k, f.width) + Work(kernels=0.4 * m * k) * (tries + again)
    arrays = (FACTORED if few else SPECTRAL) if square else design(f)
    room = (arrays + 2 * (f.layers - 1)) * m * k + side(f, m, k, square)
    return Stage("search", m, tries, values + each * tries + fine * again, f.itemsize * room)


def first_search(f: Facts, m: int, k: int, square: bool) -> Stage:
    """The search on some rows that comes before sums or iterations."""
    if f.family == "labels":
        return label_search(replace(f, square=square), m, k, "search", f.sigmas + beyond(f), f.alphas)
    return search(f, m, k, square)


def beyond(f: Facts) -> float:
    """Average number of sigmas tried because the best one lies on the border."""
    return BEYOND if f.grows and f.sigmas > 1 else 0.0


def design(f: Facts) -> float:
    """Arrays of the size of a design that is not square."""
    return DESIGN if f.blocks == 1 else BY_CLASS


def spectrum(f: Facts, m: int, k: int, alphas: float, square: bool) -> Work:
    """One sigma by a decomposition."""
    if f.largest > 1 and f.folds <= 50:
        left = m * (1 - 1 / max(f.folds, 2))
        once = eigen(left) if square else singular(left, k)
        return once * f.folds + points(alphas, m, k, f.c)
    once = eigen(m) if square else sum((singular(m, k / f.blocks) for _ in range(f.blocks)), Work())
    white = Work() if square or f.norm == "coefficients" else Work(factors=m * k**2 / f.blocks)
    return once + white + points(alphas, m, k / f.blocks, f.c)


def by_factors(f: Facts, m: int, alphas: float) -> Work:
    """A few alphas by a factor for each."""
    square = Work(products=4 * m**3) if f.norm == "coefficients" else Work()
    return (factor(m) + inverse(m) + square + Work(numbers=4 * m**2)) * alphas + judged(alphas, m, f.c)


def refinement(f: Facts, m: int) -> Stage:
    """Alpha again, after a search on m rows: on all rows, or on some and once on all."""
    rows = rows_to_refine(m, f.n, f.square) if f.grows else f.n
    suits = f.square and f.exact and f.largest <= max(f.n / 50, 2)

    def each(rows: int, alphas: float) -> Work:
        return by_factors(f, rows, alphas) if suits else spectrum(f, rows, min(f.b, rows), alphas, f.square)

    work = each(f.n, REFINED if rows == f.n else 1.0) + (each(rows, REFINED) if m < rows < f.n else Work())
    arrays = (FACTORED + 1.5 * (f.norm == "coefficients") if suits else SPECTRAL) if f.square else design(f)
    room = (arrays + 2 * (f.layers - 1)) * f.n * f.b + side(f, f.n, f.b, f.square)
    return Stage("refinement", f.n, 1, kernel(f.n, f.b, f.width) + work, f.itemsize * room)


def solve(f: Facts) -> Stage:
    """Coefficients from all rows."""
    if f.square:
        work = factor(f.n) * (1 if f.norm == "function" else 4) + Work(factors=2 * f.n**2 * f.c)
    else:
        work = Work(products=2 * f.n * f.b**2 / f.blocks, factors=f.n * f.b**2 / f.blocks)
    room = (SOLVED + f.layers - 1) * f.n * f.b + side(f, f.n, f.b, f.square)
    values = kernel(f.n, f.b, f.width) * (0.4 if f.chooses else 1.0)
    return Stage("solve", f.n, 1, work + values, f.itemsize * room)


def side(f: Facts, n: int, b: int, square: bool) -> float:
    """Numbers in addition to the design: kernel of the centres, scores of all rows, copies of the rows."""
    return (0 if square else 3 * b**2) + 8 * n * f.c + 2 * n * f.width


def moments(f: Facts) -> list[Stage]:
    """Sums over all rows in blocks, and held-out scores of a sample."""
    m, _ = f.searched("moments")
    wide = 8 * max(f.b, f.width)
    block = 2.0 * min(block_bytes(max(CHUNK, min(f.b * wide, SUM_CHUNK))), f.n * wide)
    folds = f.folds if f.largest > 2000 else 1
    rows = min(f.n, SAMPLE_ROWS)
    sums = kernel(f.n, f.b, f.width) + Work(products=2 * f.n * f.b**2, numbers=4 * f.n * f.b)
    settle = eigen(f.b) * (folds + 1) + Work(products=4 * rows * f.b**2)
    if f.family == "labels":
        settle = settle + label_points(f, rows, f.b) * (REFINED * min(SETTLED, f.sharings))
    else:
        settle = settle + points(REFINED, rows, f.b, f.c)
    square = 8 * f.b**2
    held = 8 * 3.0 * rows * f.b
    data = f.itemsize * (5 * f.n * f.c + f.n * f.width)
    first = [first_search(f, m, min(m, f.b), f.b >= m)] if f.chooses else []
    return [
        *first,
        Stage("sums over rows", f.n, 1, sums, block + (5 + folds) * square + data),
        Stage("choose alpha", rows, 1, settle, held * f.chooses + (8 + folds) * square + data),
    ]


def descent(f: Facts) -> list[Stage]:
    """Stochastic gradients, by passes."""
    m, k = f.searched("sgd")
    sample = min(f.n, max(2 * f.b, 1000))
    passes = min(PASSES, f.max_passes)
    once = kernel(f.n, f.b, f.width) + Work(products=4 * f.n * f.b * f.c, numbers=4 * f.n * f.b)
    start = kernel(sample, f.b, f.width) + Work(products=2 * sample * f.b**2) + eigen(f.b)
    room = f.itemsize * (2 * (sample + f.b) * f.b + side(f, f.n, f.b, False))
    first = [search(f, m, k, square=f.b >= m)] if f.chooses else []
    return [*first, Stage("gradient descent", f.n, passes, start + once * passes, room)]


def iterations(f: Facts) -> list[Stage]:
    """Conjugate gradients with a kernel matrix that is stored in part, at most half of it."""
    if f.family == "task machine":
        return task_iterations(f)
    m, k = f.searched("krylov")
    first = [search(f, m, k, square=True)] if f.chooses else []
    rival = [search(rivalled(f), min(f.n, m), f.rival, square=False)] if f.rival and f.chooses else []
    if f.chooses and f.classes and f.grows:
        some = replace(f, n=min(f.n, max(SETTLE_ROWS, f.n // 4)))
        first.append(replace(krylov_stage(some, REFINED), what="refinement"))
    return [*first, *rival, krylov_stage(f, 2.0 if f.chooses else 1.0)]


def rivalled(f: Facts) -> Facts:
    """A linear model by its coefficients."""
    return replace(f, b=f.rival, square=False, sigmas=1, options=1, layers=1, sharings=1)


def krylov_stage(f: Facts, solves: float) -> Stage:
    """A preconditioner and iterations."""
    half, budget = f.n * (f.n + 256) / 2, kernel_budget()
    size = f.itemsize if half * f.itemsize <= budget and not f.coarse else 4
    rank, held = preconditioner_rank(f.n, size), min(half * size, budget)
    kept = held / (half * size)
    values = kernel(f.n, f.n / 2, f.width)
    start = kernel(f.n, rank, f.width) + Work(products=2 * f.n * rank**2, factors=f.n * rank**2)
    # Products with few columns have half of the speed of those with many, and half of the kernel is read twice.
    each = Work(products=2 * (2 * f.n**2 * f.c + 4 * f.n * rank * f.c), numbers=f.n**2)
    work = start + each * ITERATIONS + values * (kept + (1 - kept) * ITERATIONS)
    work = work * (size / f.itemsize)  # single precision takes half of the time
    room = (
        held
        + (2**24 if kept < 1 else 0)
        + size * 3.5 * f.n * rank
        + 8 * 14 * f.n * f.c
        + f.itemsize * 2 * f.n * f.width
    )
    return Stage("iterations", f.n, solves * ITERATIONS, work * solves, room)


#: Typical numbers of a search by logistic refits: points evaluated for each fold, Newton steps of a refit from the
#: last point, and conjugate gradient iterations of a step.
LOGISTIC_POINTS, NEWTON_STEPS, NEWTON_ITERATIONS = 9.0, 4.0, 8.0


def logistic(f: Facts) -> list[Stage]:
    """Refits of every fold at every point, then a fit to all rows; in double precision."""
    outputs = 1 if f.c == 2 else f.c
    twice = Work(products=4.0 * f.n * f.b * outputs, numbers=2.0 * f.n * f.b, calls=20.0)  # by the design and back
    if outputs == 1 and f.b <= FACTOR:
        step = twice + Work(products=2.0 * f.n * f.b**2) + factor(f.b)
    else:
        step = twice * (1 + NEWTON_ITERATIONS * min(outputs, 2))
    points = (LOGISTIC_POINTS if f.grows else float(f.sigmas * f.alphas)) * min(WALKED, f.sharings)
    design = factor(f.b) + Work(factors=0.0 if f.square else f.n * f.b**2, kernels=0.4 * f.n * f.b)
    room = 8.0 * (7 + f.layers - 1) * f.n * f.b
    refits = step * (NEWTON_STEPS * max(f.folds, 1) * points) + design * min(points, f.sigmas + beyond(f))
    first = [Stage("search", f.n, points, kernel(f.n, f.b, f.width) + refits, room)] if f.chooses else []
    return [*first, Stage("solve", f.n, 1, design + step * (2 * NEWTON_STEPS), room)]


#: Typical number of sharings tried with every sigma, and in the refinement of alpha.
WALKED, SETTLED = 2.7, 3.0


def tries(f: Facts) -> float:
    """Typical number of points of sigma and sharing in a search."""
    sigmas = f.sigmas + beyond(f)
    if f.sharings == 1:
        return sigmas + f.options - 1
    return sigmas * min(WALKED, f.sharings) + max(0.0, f.sharings - WALKED) + f.options - 1


def dual(f: Facts) -> list[Stage]:
    """The kernel of all rows, coupled by their tasks."""
    stages = []
    if f.chooses:
        m, _ = f.searched("dual")
        stages = [dual_search(f, m)]
        if m < f.n:
            stages.append(dual_settling(f, m))
    work = factor(f.n) + Work(numbers=4 * f.n**2)
    room = (SOLVED + 1 + 2 * (f.layers - 1)) * f.n**2 + side(f, f.n, f.b, f.square)
    return [*stages, Stage("solve", f.n, 1, work, f.itemsize * room)]


def dual_search(f: Facts, m: int) -> Stage:
    """On some tasks."""
    k = m if f.square else min(f.b, m)
    once = eigen(m) + points(f.alphas, m, m, f.c) + Work(numbers=6 * m**2, kernels=0.4 * m * k)
    gram = Work() if f.square and f.norm == "function" else Work(products=2 * m**2 * k) * f.sigmas
    room = (SPECTRAL + 2 + 2 * (f.layers - 1)) * m**2 + side(f, m, k, f.square)
    again = eigen(m) * (2 * f.grows * (1 + (f.options > 1)))
    work = kernel(m, k, f.width) + gram + once * tries(f) + again
    return Stage("search", m, tries(f), work, f.itemsize * room)


def dual_settling(f: Facts, m: int) -> Stage:
    """Alpha and sharing after a search on m rows: on all rows, or on some and once on all."""
    rows, walked = rows_to_refine(m, f.n, f.square) if f.grows else f.n, min(SETTLED, f.sharings)

    def points_on(n: int, count: float) -> Work:
        each = factor(n) + inverse(n) + Work(numbers=10 * n**2)
        if f.norm == "coefficients" or not f.square:
            each = each + Work(products=2 * n**2 * min(f.b, n)) * (1 / REFINED)
        return kernel(n, min(f.b, n), f.width) + each * count + judged(count, n, f.c)

    work = points_on(f.n, 3.0 * walked if rows == f.n else 1.0)
    work = work + (points_on(rows, 3.0 * walked) if m < rows < f.n else Work())
    room = (FACTORED + 2.5 + 2 * (f.layers - 1)) * f.n**2 + side(f, f.n, f.b, f.square)
    return Stage("refinement", f.n, walked if rows == f.n else 1, work, f.itemsize * room)


def arrow(f: Facts) -> list[Stage]:
    """Few basis functions: linear in the rows and in the tasks."""
    stages = []
    if f.chooses:
        m, _ = f.searched("arrow")
        stages = [arrow_search(f, m, "search", tries(f), f.alphas / 2)]
        if m < f.n and f.n * f.b <= SETTLE_NUMBERS and search_bytes(f.n * f.b) <= available_memory():
            stages.append(arrow_search(f, f.n, "refinement", min(SETTLED, f.sharings), 2.0))
    block = 3.0 * min(block_bytes(TASK_CHUNK), 8 * f.n * f.b)
    room = block + 8 * 6 * f.b**2 + f.itemsize * (2 * (f.tasks + 1) * f.b * f.c + side(f, f.n, 0, True))
    work = kernel(f.n, f.b, f.width) + Work(products=4 * f.n * f.b**2, numbers=8 * f.n * f.b, calls=20 * f.tasks)
    return [*stages, Stage("solve", f.n, 2, work * 2, room)]


def arrow_search(f: Facts, m: int, what: str, times: float, alphas: float) -> Stage:
    """Held-out scores from a decomposition of every task."""
    rows = m / max(1.0, f.tasks * m / f.n)
    sigmas = f.sigmas + beyond(f) if what == "search" else 1.0
    split = singular(max(rows, 1.0), f.b) * (m / max(rows, 1.0))
    once = kernel(m, f.b, f.width) + Work(factors=m * f.b**2) + split
    wide = min(rows, f.b)
    point = Work(products=8 * m * wide * f.b, numbers=32 * m * f.b) + factor(f.b) + judged(2.0, m, f.c)
    room = 6 * m * f.b + 6 * f.b**2 + side(f, m, f.b, False) + (m / rows) * wide * f.b
    return Stage(what, m, times, once * sigmas + point * (times * alphas), 8 * room)


def sylvester(f: Facts) -> list[Stage]:
    """One decomposition of the rows for each sigma, one of the labels for each sharing."""
    last = solve(f)
    last = replace(last, peak_bytes=last.peak_bytes + f.itemsize * tables(f))
    if not f.chooses:
        return [last]
    m, k = f.searched("cholesky")
    stages = [label_search(f, m, k, "search", f.sigmas + beyond(f), f.alphas)]
    if m < f.n or not f.exact:
        stages.append(label_search(f, f.n, f.b, "refinement", 1.0, REFINED))
    return [*stages, last]


def tables(f: Facts) -> float:
    """Numbers stored for all labels: their scores, and all pairs."""
    return 10 * f.n * f.c + f.pairs * 5 * f.labels**2 * 8 / f.itemsize


def label_search(f: Facts, m: int, k: int, what: str, sigmas: float, alphas: float) -> Stage:
    """All sharings and alphas of some sigmas."""
    sharings = min(WALKED, f.sharings) if what == "search" else min(SETTLED, f.sharings)
    count = (sigmas * sharings + (f.sharings - sharings if what == "search" else 0)) * alphas
    once = eigen(m) if f.square else singular(m, k) + Work(factors=m * k**2)
    # Unknown labels are filled in for the search; the refinement then refits every fold.
    refits = 1.0 if f.exact or what == "search" else float(STAND_IN)
    work = kernel(m, k, f.width) + (once + Work(kernels=0.4 * m * k)) * (sigmas * refits)
    work = work + label_points(f, m, k) * (count * refits)
    arrays = SPECTRAL + 1 if f.square else DESIGN
    room = (arrays + 2 * (f.layers - 1)) * m * k + side(f, m, k, f.square) + tables(f)
    return Stage(what, m, sigmas * sharings, work, f.itemsize * room)


def label_points(f: Facts, m: float, k: float) -> Work:
    """Held-out scores of all labels at one alpha."""
    return points(1, m, k, f.c) + judged(0.5 * f.labels, m, 2)


def conjugate(f: Facts) -> list[Stage]:
    """Many labels and many rows, by iterations."""
    m, _ = f.searched("cg")
    first = [first_search(f, m, m, True)] if f.chooses else []
    if f.chooses and not f.exact:
        first.append(label_search(replace(f, square=True), m, m, "refinement", 1.0, REFINED))
    turns = 1.0 + f.chooses * folds_to_hold_out(f.n, f.c)
    return [*first, krylov_stage(f, turns)]


def task_iterations(f: Facts) -> list[Stage]:
    """Conjugate gradients over the rows of all tasks."""
    m, _ = f.searched("krylov")
    first = [dual_search(replace(f, square=True), m)] if f.chooses else []
    rival = arrow(replace(f, b=f.rival, sigmas=1)) if f.rival and f.chooses else []
    return [*first, *rival, krylov_stage(f, 2.0 if f.chooses else 1.0)]

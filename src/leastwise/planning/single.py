"""Steps of fits of a single task: by factors, by sums over rows, by descent, by iterations."""

from __future__ import annotations

from dataclasses import replace

from leastwise.basis import SUM_CHUNK
from leastwise.krylov_fitting import kernel_budget, preconditioner_rank
from leastwise.memory import block_bytes
from leastwise.planning.facts import Facts, Stage
from leastwise.planning.work import Work, eigen, factor, inverse, judged, kernel, points, singular
from leastwise.selection.moments import SAMPLE_ROWS

#: Alphas that are looked at from a good start, and sigmas beyond a grid that may grow.
REFINED, BEYOND = 4.0, 0.5
#: Arrays of the size of the design, by what is done: measured peaks, see benchmarks/plan.py.
SPECTRAL, DESIGN, FACTORED, SOLVED = 6.5, 12.0, 3.5, 3.0
#: Where every class has centres of its own.
BY_CLASS = 9.5
#: Iterations of conjugate gradients and passes of a descent, as a rule.
ITERATIONS, PASSES = 25.0, 40.0


def direct(f: Facts) -> list[Stage]:
    """Eigendecompositions or singular values on some rows, then factors on all."""
    if not f.chooses:
        return [solve(f)]
    given = f.sigmas == f.alphas == 1 and not f.grows  # nothing to look for on fewer rows
    m, k = (f.n, f.b) if given else f.searched("cholesky")
    stages = [search(f, m, k)]
    if m < f.n:
        stages.append(refinement(f))
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


def beyond(f: Facts) -> float:
    """Sigmas that are tried because the best lies on the border, as a rule."""
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


def refinement(f: Facts) -> Stage:
    """Alpha again, on all rows."""
    suits = f.square and f.exact and f.largest <= max(f.n / 50, 2)
    each = by_factors(f, f.n, REFINED) if suits else spectrum(f, f.n, f.b, REFINED, f.square)
    arrays = (FACTORED + 1.5 * (f.norm == "coefficients") if suits else SPECTRAL) if f.square else design(f)
    room = (arrays + 2 * (f.layers - 1)) * f.n * f.b + side(f, f.n, f.b, f.square)
    return Stage("refinement", f.n, 1, kernel(f.n, f.b, f.width) + each, f.itemsize * room)


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
    """Numbers beside those of the design: centres among themselves, scores of all rows, copies of the rows."""
    return (0 if square else 3 * b**2) + 8 * n * f.c + 2 * n * f.width


def moments(f: Facts) -> list[Stage]:
    """Sums over all rows in blocks, held-out scores of some."""
    m, _ = f.searched("moments")
    block = block_bytes(SUM_CHUNK) * 2.0
    folds = f.folds if f.largest > 2000 else 1
    rows = min(f.n, SAMPLE_ROWS)
    sums = kernel(f.n, f.b, f.width) + Work(products=2 * f.n * f.b**2, numbers=4 * f.n * f.b)
    settle = eigen(f.b) * (folds + 1) + Work(products=4 * rows * f.b**2) + points(REFINED, rows, f.b, f.c)
    square = 8 * f.b**2
    held = 8 * 3.0 * rows * f.b
    data = f.itemsize * (5 * f.n * f.c + f.n * f.width)
    first = [search(f, m, min(m, f.b), square=f.b >= m)] if f.chooses else []
    return [
        *first,
        Stage("sums over rows", f.n, 1, sums, block + (5 + folds) * square + data),
        Stage("settle", rows, 1, settle, held * f.chooses + (8 + folds) * square + data),
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
    return [*first, Stage("descent", f.n, passes, start + once * passes, room)]


def iterations(f: Facts) -> list[Stage]:
    """Conjugate gradients with a kernel that is not held as a whole, or half of it."""
    m, k = f.searched("krylov")
    first = [search(f, m, k, square=True)] if f.chooses else []
    rival = [search(rivalled(f), min(f.n, m), f.rival, square=False)] if f.rival and f.chooses else []
    solves = 2.0 if f.chooses else 1.0
    return [*first, *rival, krylov_stage(f, solves)]


def rivalled(f: Facts) -> Facts:
    """A linear model by its coefficients."""
    return replace(f, b=f.rival, square=False, sigmas=1, options=1, layers=1, sharings=1)


def krylov_stage(f: Facts, solves: float) -> Stage:
    """A preconditioner and iterations."""
    half, budget = f.n * (f.n + 256) / 2, kernel_budget()
    size = f.itemsize if half * f.itemsize <= budget else 4
    rank, held = preconditioner_rank(f.n, size), min(half * size, budget)
    kept = held / (half * size)
    values = kernel(f.n, f.n / 2, f.width)
    start = kernel(f.n, rank, f.width) + Work(products=2 * f.n * rank**2, factors=f.n * rank**2)
    each = Work(products=2 * f.n**2 * f.c + 4 * f.n * rank * f.c, numbers=0.5 * f.n**2)
    work = start + each * ITERATIONS + values * (kept + (1 - kept) * ITERATIONS)
    room = (
        held
        + (2**24 if kept < 1 else 0)
        + size * 3.5 * f.n * rank
        + 8 * 14 * f.n * f.c
        + f.itemsize * 2 * f.n * f.width
    )
    return Stage("iterations", f.n, solves * ITERATIONS, work * solves, room)

"""Steps of fits of many tasks and many labels."""

from __future__ import annotations

from dataclasses import replace

from leastwise.memory import available_memory, block_bytes
from leastwise.planning.facts import Facts, Stage
from leastwise.planning.single import DESIGN, FACTORED, REFINED, SOLVED, SPECTRAL, beyond, krylov_stage, side, solve
from leastwise.planning.work import Work, eigen, factor, inverse, judged, kernel, points, singular
from leastwise.selection.arrow import CHUNK
from leastwise.selection.plan import SETTLE_NUMBERS, search_bytes

#: Sharings that are tried with every sigma, as a rule, where not every one has to be; and where alpha is settled.
WALKED, SETTLED = 2.7, 3.0


def tries(f: Facts) -> float:
    """Points of sigma and sharing that a search visits, as a rule."""
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
            stages.append(dual_settling(f))
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


def dual_settling(f: Facts) -> Stage:
    """Alpha and sharing on all rows."""
    walked = min(SETTLED, f.sharings)
    each = factor(f.n) + inverse(f.n) + Work(numbers=10 * f.n**2)
    if f.norm == "coefficients" or not f.square:
        each = each + Work(products=2 * f.n**2 * f.b) * (1 / REFINED)
    work = kernel(f.n, f.b, f.width) + (each * 3.0 + judged(3.0, f.n, f.c)) * walked
    room = (FACTORED + 2.5 + 2 * (f.layers - 1)) * f.n**2 + side(f, f.n, f.b, f.square)
    return Stage("settling", f.n, walked, work, f.itemsize * room)


def arrow(f: Facts) -> list[Stage]:
    """Few basis functions: linear in the rows and in the tasks."""
    stages = []
    if f.chooses:
        m, _ = f.searched("arrow")
        stages = [arrow_search(f, m, "search", tries(f), f.alphas / 2)]
        if m < f.n and f.n * f.b <= SETTLE_NUMBERS and search_bytes(f.n * f.b) <= available_memory():
            stages.append(arrow_search(f, f.n, "settling", min(SETTLED, f.sharings), 2.0))
    block = 3.0 * min(block_bytes(CHUNK), 8 * f.n * f.b)
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
        stages.append(label_search(f, f.n, f.b, "settling", 1.0 if f.exact else 5.0, REFINED))
    return [*stages, last]


def tables(f: Facts) -> float:
    """Numbers that are kept of all labels: of their scores, and of all pairs."""
    return 10 * f.n * f.c + f.pairs * 5 * f.labels**2 * 8 / f.itemsize


def label_search(f: Facts, m: int, k: int, what: str, sigmas: float, alphas: float) -> Stage:
    """All sharings and alphas of some sigmas."""
    sharings = min(WALKED, f.sharings) if what == "search" else min(SETTLED, f.sharings)
    count = (sigmas * sharings + (f.sharings - sharings if what == "search" else 0)) * alphas
    once = eigen(m) if f.square else singular(m, k) + Work(factors=m * k**2)
    refits = 1.0 if f.exact else 5.0
    work = kernel(m, k, f.width) + (once + Work(kernels=0.4 * m * k)) * (sigmas * refits)
    work = work + (points(1, m, k, f.c) + judged(0.5 * f.labels, m, 2)) * (count * refits)
    arrays = SPECTRAL + 1 if f.square else DESIGN
    room = (arrays + 2 * (f.layers - 1)) * m * k + side(f, m, k, f.square) + tables(f)
    return Stage(what, m, sigmas * sharings, work, f.itemsize * room)


def conjugate(f: Facts) -> list[Stage]:
    """Many labels of many rows, by iterations."""
    m, _ = f.searched("cg")
    narrow = replace(f, square=True)
    first = [label_search(narrow, m, m, "search", f.sigmas + beyond(f), f.alphas)] if f.chooses else []
    turns = (5.0 if f.n**2 * f.c <= 2_000_000_000 else 1.0) + 1.0 if f.chooses else 1.0
    return [*first, krylov_stage(f, turns)]


def task_iterations(f: Facts) -> list[Stage]:
    """Conjugate gradients over the rows of all tasks."""
    m, _ = f.searched("krylov")
    first = [dual_search(replace(f, square=True), m)] if f.chooses else []
    rival = arrow(replace(f, b=f.rival, sigmas=1)) if f.rival and f.chooses else []
    return [*first, *rival, krylov_stage(f, 2.0 if f.chooses else 1.0)]

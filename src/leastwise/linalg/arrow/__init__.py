r"""Many tasks over the same b basis functions: a block-arrow system, eliminated task by task.

The scores of task t are ``Phi (beta_0 + beta_t)``, and an intercept times v. With ``own_t >= 0`` the Gram matrix is

    H = sharing Phi Phi' + blockdiag(Q_t),     Q_t = rho I + own_t Phi_t Phi_t'.

Let ``J = [sqrt(sharing) Phi, v]`` be the columns that all tasks share (v, the roots of the weights, only with an
intercept). The shared part is a ridge problem of b + 1 unknowns, whose ridge spares the intercept:

    A theta = J' Q^-1 Z,     A = J' Q^-1 J + diag(I, 0),     beta_0 = sqrt(sharing) theta,  b = theta's last row,
    beta_t = own_t Phi_t' Q_t^-1 (Z_t - Phi_t beta_0 - v_t b).

A and its right side are sums over the tasks: ``solve_arrow`` streams them. Small tasks go through in batches of like
sizes, filled up with rows of zeros, which change nothing. With ``Q_t = L L'`` and ``W = L^-1 Phi_t`` the sum of W'W
over a batch is one product. ``decompose`` keeps ``Phi_t = U diag(s) V'`` instead, for any sharing, own and rho.

Products cost digits: errors are about ``eps own_t |Phi_t|^2 / rho`` and ``eps sharing tr(S)`` at worst. Where these
leave less than a third of the digits, the tasks are reduced by singular values and the shared part by QR instead, in
six times the time. ``decompose`` uses singular values always: at rho = 1e-8 of the largest eigenvalue, leave-one-out
was right to 6e-13, and to 1e-9 from the eigenvalues of ``Phi_t Phi_t'``, which take a third of the time.

Products and factors of the tasks are numpy's throughout (see ``spectrum``).
"""

from leastwise.linalg.arrow.batches import Chunk, Source
from leastwise.linalg.arrow.decomposed import Decomposed, decompose
from leastwise.linalg.arrow.shared import Factors, Sums, System, Triangle
from leastwise.linalg.arrow.solve import Arrow, arrow_sums, arrow_system, arrow_triangle, solve_arrow

__all__ = [
    "Arrow",
    "Chunk",
    "Decomposed",
    "Factors",
    "Source",
    "Sums",
    "System",
    "Triangle",
    "arrow_sums",
    "arrow_system",
    "arrow_triangle",
    "decompose",
    "solve_arrow",
]

"""Slow, obvious forms: loops, refits, explicit inverses. The tests compare the library with these."""

from __future__ import annotations

import numpy as np


def rbf(X, Y, sigma):
    """Gaussian kernel, entry by entry."""
    return np.array([[np.exp(-np.sum((x - y) ** 2) / (2 * sigma**2)) for y in Y] for x in X])


def ridge_fit(Phi, Z, weights, alpha, penalty=None, bias=False):
    """argmin  sum_i w_i |z_i - Phi_i theta - b|^2 / sum(w) + alpha theta' penalty theta, by the normal equations."""
    b = Phi.shape[1]
    penalty = np.eye(b) if penalty is None else penalty
    A = Phi.T @ (weights[:, None] * Phi) + alpha * weights.sum() * penalty
    if not bias:
        return np.linalg.solve(A, Phi.T @ (weights[:, None] * Z)), np.zeros(Z.shape[1])
    column = Phi.T @ weights
    M = np.block([[A, column[:, None]], [column[None], np.array([[weights.sum()]])]])
    right = np.vstack([Phi.T @ (weights[:, None] * Z), weights @ Z])
    solution = np.linalg.solve(M, right)
    return solution[:-1], solution[-1]


def gram_fit(K, Z, weights, alpha, bias=False):
    """argmin  sum_i w_i |z_i - (K a)_i - b|^2 / sum(w) + alpha a'Ka, in the form (K + alpha sum(w) W^-1) a = z - b.

    The same as ``ridge_fit`` with the penalty K, but well conditioned.
    """
    n = len(K)
    A = K + alpha * weights.sum() * np.diag(1 / weights)
    if not bias:
        return np.linalg.solve(A, Z), np.zeros(Z.shape[1])
    M = np.block([[A, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(M, np.vstack([Z, np.zeros(Z.shape[1])]))
    return solution[:-1], solution[-1]


def heldout_by_refits(Phi, Z, weights, alpha, folds, *, own=None, penalty=None, bias=False, weigh_basis=False):
    """Leave each fold out, with the basis functions that its rows own, fit the rest, score the fold.

    ``weigh_basis``: every row is a basis function, and counts there with its weight too.
    """
    F = np.full(Z.shape, np.nan)
    for fold in np.unique(folds):
        out = folds == fold
        keep = np.ones(Phi.shape[1], bool)
        if own is not None:
            keep[own[out & (own >= 0)]] = False
        scale = np.sqrt(weights)[keep] if weigh_basis else np.ones(keep.sum())
        part = penalty[np.ix_(keep, keep)] if penalty is not None else None
        theta, b = ridge_fit(Phi[~out][:, keep] * scale, Z[~out], weights[~out], alpha, part, bias)
        F[out] = (Phi[out][:, keep] * scale) @ theta + b
    return F


def gram_heldout_by_refits(K, Z, weights, alpha, folds, bias=False):
    """Leave each fold out of a kernel ridge regression, fit the rest, score the fold."""
    F = np.full(Z.shape, np.nan)
    for fold in np.unique(folds):
        out = folds == fold
        a, b = gram_fit(K[np.ix_(~out, ~out)], Z[~out], weights[~out], alpha, bias)
        F[out] = K[np.ix_(out, ~out)] @ a + b
    return F


def lspc_pseudo_code(X, y, X_new, sigma, lam):
    """Figure 3 of the paper, line by line."""
    n, classes = len(X), np.unique(y)
    scores = []
    for k in classes:
        C = X[y == k]
        K = rbf(X, C, sigma)
        H = np.zeros((len(C), len(C)))
        for i in range(n):
            H += np.outer(K[i], K[i]) / n
        h = sum(K[i] for i in range(n) if y[i] == k) / n
        theta = np.linalg.solve(H + lam * np.eye(len(C)), h)
        scores.append(np.maximum(0, rbf(X_new, C, sigma) @ theta))
    P = np.column_stack(scores)
    return P / P.sum(axis=1, keepdims=True)


def coupled_fit(X, y, task, w, B, kernel, alpha, norm, bias, n_classes):
    """Tasks tied by B, in the dual and by loops; returns the scores of new rows as a function of (X, task).

    The ridge is alpha times the weight of these rows. With the penalty on the coefficients every row is a basis
    function, which counts with the row's weight.
    """
    K = kernel(X, X)
    G = K if norm == "function" else K @ np.diag(w) @ K
    H = np.array([[G[i, j] * B[task[i], task[j]] for j in range(len(X))] for i in range(len(X))])
    a, b = gram_fit(H, np.eye(n_classes)[y], w, alpha, bias)

    def scores(X_new, task_new):
        k = kernel(X_new, X)
        g = k if norm == "function" else k @ np.diag(w) @ K
        H = [[g[i, j] * B[task_new[i], task[j]] for j in range(len(X))] for i in range(len(X_new))]
        return np.array(H) @ a + b

    return scores


def coupled_heldout_by_refits(X, y, task, w, B, kernel, alpha, norm, bias, n_classes, folds):
    """Leave each fold out of ``coupled_fit``, with the basis functions of its rows, and score the fold."""
    F = np.full((len(X), n_classes), np.nan)
    for fold in np.unique(folds):
        out = folds == fold
        fit = coupled_fit(X[~out], y[~out], task[~out], w[~out], B, kernel, alpha, norm, bias, n_classes)
        F[out] = fit(X[out], task[out])
    return F


def intercept_fit(G, Z, task, w, rho, intercept_ratio, bias):
    """Tasks with intercepts of their own, by the bordered system (24) of Xu et al. (2013), or its shrunk form.

    Noise of variance rho / w_i, intercepts of variance spread * rho; at spread infinity they are free. Returns the
    coefficients of the rows, the shared intercept, and what each task adds to it.
    """
    n, tasks = len(Z), np.unique(task)
    S = (task[:, None] == tasks).astype(float)
    H = G + rho * np.diag(1 / w)
    if np.isfinite(intercept_ratio):
        H = H + rho * intercept_ratio * S @ S.T
        free = np.ones((n, 1)) if bias else np.zeros((n, 0))
    else:
        free = S
    m = free.shape[1]
    M = np.block([[H, free], [free.T, np.zeros((m, m))]])
    solution = np.linalg.solve(M, np.vstack([Z, np.zeros((m, Z.shape[1]))]))
    A, b = solution[:n], solution[n:]
    if np.isfinite(intercept_ratio):
        return A, b[0] if bias else np.zeros(Z.shape[1]), rho * intercept_ratio * S.T @ A
    return A, np.zeros(Z.shape[1]), b


def intercept_heldout_by_refits(G, Z, task, w, alpha, intercept_ratio, bias, folds):
    """Leave each fold out of ``intercept_fit``, and score it; the ridge is alpha times the weight that stays."""
    F = np.full(Z.shape, np.nan)
    for fold in np.unique(folds):
        out = folds == fold
        A, b, own = intercept_fit(
            G[np.ix_(~out, ~out)], Z[~out], task[~out], w[~out], alpha * w[~out].sum(), intercept_ratio, bias
        )
        place = np.searchsorted(np.unique(task[~out]), task[out])
        F[out] = G[np.ix_(out, ~out)] @ A + b + own[place]
    return F


# ------------------------------------------------------- least-squares support vector machines, letter by letter


def lssvc_system(K, y, gamma):
    """The system (5) of Xu et al. (2013): labels -1 and 1 on the border and in Omega. Returns b and alpha."""
    n = len(y)
    H = np.array([[y[i] * y[j] * K[i, j] for j in range(n)] for i in range(n)]) + np.eye(n) / gamma
    M = np.block([[np.zeros((1, 1)), y[None]], [y[:, None], H]])
    solution = np.linalg.solve(M, np.r_[0, np.ones(n)])
    return solution[0], solution[1:]


def lssvr_system(K, y, gamma):
    """The system (11): ones on the border. Returns b and alpha."""
    n = len(y)
    M = np.block([[np.zeros((1, 1)), np.ones((1, n))], [np.ones((n, 1)), K + np.eye(n) / gamma]])
    solution = np.linalg.solve(M, np.r_[0, y])
    return solution[0], solution[1:]


def tasks_system(K, task, y, gamma, lambda_, classify):
    """H, A and d_2 of the systems (18) and (24), for rows whose tasks are 0 ... m-1."""
    n, m = len(y), int(task.max()) + 1
    sign = y if classify else np.ones(n)
    Omega = np.array([[sign[i] * sign[j] * K[i, j] for j in range(n)] for i in range(n)])
    B = np.array([[Omega[i, j] if task[i] == task[j] else 0.0 for j in range(n)] for i in range(n)])
    A = np.array([[sign[i] if task[i] == t else 0.0 for t in range(m)] for i in range(n)])
    return Omega + np.eye(n) / gamma + m / lambda_ * B, A, np.ones(n) if classify else y


def tasks_solution(K, task, y, gamma, lambda_, classify):
    """The intercepts b and the alpha of (18), with labels -1 and 1, or of (24)."""
    H, A, right = tasks_system(K, task, y, gamma, lambda_, classify)
    m = A.shape[1]
    M = np.block([[np.zeros((m, m)), A.T], [A, H]])
    solution = np.linalg.solve(M, np.r_[np.zeros(m), right])
    return solution[:m], solution[m:]


def tasks_decision(k, t, task, weights, b, lambda_):
    """(19) before the sign, and (25): rows of task t, kernel values k; weights are alpha_j y_j, or alpha_j."""
    m = len(b)
    return np.array(
        [
            sum(weights[j] * k[i, j] for j in range(len(task)))
            + m / lambda_ * sum(weights[j] * k[i, j] for j in range(len(task)) if task[j] == t)
            + b[t]
            for i in range(len(k))
        ]
    )


def jackknife_plus_by_definition(said, left, coverage):
    """The interval of Barber et al. (2021) of one new row.

    ``said[i]`` is what the model without row i says of it, ``left[i]`` how far that model is off in row i.
    """
    n = len(left)
    rank = int(np.ceil(coverage * (n + 1) - 1e-9))
    if rank > n:
        return -np.inf, np.inf
    low = sorted(said - np.abs(left), reverse=True)
    high = sorted(said + np.abs(left))
    return low[rank - 1], high[rank - 1]


def grouped_quantile(values, group, coverage):
    """The smallest value that has a share ``coverage`` of the groups and one more at or below; by loops.

    Each row has one over the size of its group.
    """
    share = {g: 1 / sum(h == g for h in group) for g in group}
    need = coverage * (len(share) + 1)
    so_far = 0.0
    for value, g in sorted(zip(values, group, strict=True)):
        so_far += share[g]
        if so_far >= need - 1e-9:
            return value
    return np.inf


def sum_kernel(X, Y, sigma, weight, train):
    """The kernel "rbf+linear" of a model that was trained on some rows, entry by entry."""
    middle = np.mean(train, axis=0)
    height = np.mean([np.sum((x - middle) ** 2) for x in train])
    linear = np.array([[np.dot(x - middle, y - middle) / height for y in Y] for x in X])
    return linear if np.isinf(weight) else rbf(X, Y, sigma) + weight * linear

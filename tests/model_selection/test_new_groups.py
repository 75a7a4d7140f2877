"""Persons with several rows each, tested on new persons; tasks that were never seen."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from leastwise import LSPC, MultiTaskLSPC
from leastwise.datasets import make_related_tasks

#: What a held-out log-loss may be away from that of new persons, and a log-loss above that of the class shares.
MARGIN = 0.12, 0.05


def persons(count, rows, seed):
    """Rows of one person are all but equal, and have one class."""
    rng = np.random.default_rng(seed)
    home = rng.normal(size=(count, 5))
    ill = (home[:, 0] + rng.normal(size=count) > 0).astype(int)
    person = np.repeat(np.arange(count), rows)
    return home[person] + 0.15 * rng.normal(size=(len(person), 5)), ill[person], person


def share_loss(y, trained):
    """Log-loss of the class shares of the training rows."""
    return log_loss(y, np.full(len(y), trained.mean()))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_new_persons(seed):
    X, y, person = persons(100, 4, seed)
    Xn, yn, _ = persons(600, 2, 100 + seed)
    naive, honest = (LSPC(random_state=0).fit(X, y, groups=groups) for groups in (None, person))
    base = share_loss(yn, y)
    # The trap: held-out rows look all but certain, and new persons are worse off than by the class shares alone.
    assert log_loss(y, naive.heldout_proba_) < 0.1
    assert log_loss(yn, naive.predict_proba(Xn)) > base
    new = log_loss(yn, honest.predict_proba(Xn))
    assert abs(log_loss(y, honest.heldout_proba_) - new) < MARGIN[0]
    assert new < base + MARGIN[1]


@pytest.mark.parametrize("relatedness", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("seed", [0, 1])
def test_new_tasks(seed, relatedness):
    data = make_related_tasks(16, 40, relatedness=relatedness, noise=0.1, random_state=seed)
    known = data.task < 10
    model = MultiTaskLSPC(random_state=0).fit(data.X[known], data.y[known], tasks=data.task[known])
    P, yn = model.predict_proba(data.X[~known], data.task[~known]), data.y[~known]
    assert log_loss(yn, P) < share_loss(yn, data.y[known]) + MARGIN[1]
    if relatedness == 0.9:
        assert log_loss(yn, P) < share_loss(yn, data.y[known]) - 0.1

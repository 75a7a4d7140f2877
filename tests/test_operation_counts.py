"""Fits and predictions compute no more than they did: calls, products, decompositions and arrays.

``operation_counts.py`` says what is counted, and how to write the counts anew.
"""

import json
import shutil

import pytest
from operation_counts import BASELINE, counts, package, rises

#: Deliberate slowdowns: what rises, in which case, and a change of a module.
SLOWDOWNS = {
    "products": (
        "predict 2,000 rows, LSPC",
        "problem/kernels.py",
        "        return X @ Y.T\n",
        "        X @ Y.T\n        return X @ Y.T\n",
    ),
    "decompositions": (
        "fit LSPC",
        "linalg/decompositions.py",
        '    potrf = _lapack("potrf", A.dtype)\n',
        '    potrf = _lapack("potrf", A.dtype)\n    np.linalg.eigvalsh(A)\n',
    ),
    "functions": (
        "predict one row, LSPC",
        "problem/kernels.py",
        "    same = X is Y\n",
        "    same = X is Y\n    for _ in range(20):\n        squared_norms(X)\n",
    ),
    "numbers": (
        "predict 2,000 rows, LSPC",
        "problem/kernels.py",
        "    same = X is Y\n",
        "    same = X is Y\n    np.ones((len(X), len(Y))) + 1\n",
    ),
}


def baseline():
    return json.loads(BASELINE.read_text())


def test_nothing_computes_more_than_it_did():
    found = counts(package())
    assert set(found) == set(baseline()), "write the counts anew: python tests/operation_counts.py --write"
    risen = rises(baseline(), found)
    assert not risen, "\n".join(["", *risen, "If this is meant: python tests/operation_counts.py --write"])


@pytest.mark.parametrize("kind", SLOWDOWNS)
def test_a_slowdown_is_seen(kind, tmp_path):
    case, module, old, new = SLOWDOWNS[kind]
    copy = tmp_path / "leastwise"
    shutil.copytree(package(), copy, ignore=shutil.ignore_patterns("__pycache__"))
    text = (copy / module).read_text()
    assert text.count(old) == 1
    (copy / module).write_text(text.replace(old, new))
    risen = rises(baseline(), counts(copy, [case]))
    assert any(line.startswith(f"{case}: {kind} ") for line in risen)

"""Which rows the methods of the comparison get."""

import numpy as np
import pytest

from benchmarks import lssvm_peers


@pytest.mark.parametrize("raw", [True, False])
def test_raw_columns_are_for_our_models_only(raw, monkeypatch):
    given = {}

    def method(data, seed, jobs, name):
        given[name] = data.train.X
        return lambda X, task: np.zeros(len(X))

    names = [lssvm_peers.OURS, lssvm_peers.RIDGE]
    made = {name: (lambda *args, name=name: method(*args, name), False) for name in names}
    monkeypatch.setattr(lssvm_peers, "METHODS", made)
    options = ["--sets", "friedman", "--runs", "1", "--methods", *names]
    p = lssvm_peers.parser("benchmarks.lssvm_peers", "", threads=1, runs=5)
    p.add_argument("--raw", action="store_true")
    lssvm_peers.add_options(p, list(lssvm_peers.SETS), names)
    args = lssvm_peers.parse(p, options + ["--raw"] * raw)
    list(lssvm_peers.run(args))
    np.testing.assert_allclose(given[lssvm_peers.RIDGE].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(given[lssvm_peers.RIDGE].std(axis=0), 1)
    ours = given[lssvm_peers.OURS]
    assert (ours >= 0).all() and (ours <= 1).all() if raw else ours.min() < 0

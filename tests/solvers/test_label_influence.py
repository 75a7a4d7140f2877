"""Explanations of many labels: against one large system solved the long way, and against refits without a row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leastwise import MultiLabelLSPC

N, T = 22, 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
HIDDEN = np.column_stack([X @ RNG.normal(size=2) for _ in range(T)]) + 0.5 * RNG.normal(size=(N, T))
Y = (HIDDEN > 0).astype(float)
PART = np.where(RNG.random((N, T)) < 0.25, np.nan, Y)
MIXED = np.column_stack([Y[:, 0], Y[:, 1], np.digitize(HIDDEN[:, 2], [-0.5, 0.5]), Y[:, 3]])
W = RNG.uniform(0.5, 2, size=N)
NEW = RNG.normal(size=(3, 2))
SIMILAR = RNG.uniform(size=(T, T))
SIMILAR = SIMILAR + SIMILAR.T - np.diag(np.diag(SIMILAR + SIMILAR.T))
FIXED = {"sigma": 1.2, "alpha": 0.02, "sharing": 0.6, "cv": None, "calibration": None}

MODELS = {
    "learned": {},
    "alike": {"similarity": "shared"},
    "differences, penalties": {"similarity": SIMILAR, "label_penalty": [1, 2, 1, 0.5]},
    "intercepts": {"bias": "shared"},
    "alone": {"sharing": 0.0},
    "conjugate gradients": {"solver": "cg", "tol": 1e-12, "bias": "shared"},
}
LABELS = {"known": Y, "in part": PART, "many classes": MIXED}


def made(name, Y=Y, keep=slice(None), w=None, **changes):
    model = MultiLabelLSPC(**{**FIXED, **MODELS[name], "tol": 1e-12, **changes})
    return model.fit(X[keep], Y[keep], sample_weight=None if w is None else w[keep])


def label_matrix(model):
    """B of each family, from its definition."""
    modes = [coupled.modes for coupled in model.training_record_.coupled_labels]
    return [
        m.back(m.eigenvalues * m.rotate(np.eye(len(t.family.labels))))
        for m, t in zip(modes, model.training_record_.coupled_labels, strict=True)
    ]


def long_way(model, codes, w, new, ridge, skip=None):
    """Scores of new rows, and the parts of each target in them: one system of all known labels, by loops."""
    starts, tables = model.label_index_.starts, {}
    for coupled, B in zip(model.training_record_.coupled_labels, label_matrix(model), strict=True):
        labels = coupled.family.labels
        entries = [(i, s) for i in range(N) for s in range(len(labels)) if codes[i, labels[s]] >= 0 and i != skip]
        K = model.kernel_(X, X, model.sigma_)
        G = np.array([[K[i, j] * B[s, t] for j, t in entries] for i, s in entries])
        loss = np.diag([ridge / w[i] for i, _ in entries])
        V = np.array([[float(s == t) for t in range(len(labels))] for _, s in entries])
        V = V if model.bias == "shared" else V[:, :0]
        border = np.block([[G + loss, V], [V.T, np.zeros((V.shape[1], V.shape[1]))]])
        k = model.kernel_(new, X, model.sigma_)
        for t in range(len(labels)):
            right = np.array([[k[x, j] * B[t, s] for j, s in entries] for x in range(len(new))])
            right = np.hstack([right, np.tile(np.arange(V.shape[1]) == t, (len(new), 1))])
            S = np.linalg.solve(border, right.T).T[:, : len(entries)]
            for c in range(len(coupled.family.columns)):
                column = coupled.family.columns[c, t]
                value = [
                    float(starts[labels[s]] + codes[i, labels[s]] == coupled.family.columns[c, s]) for i, s in entries
                ]
                for e, (i, s) in enumerate(entries):
                    tables[i, labels[s], column] = S[:, e] * value[e]
    return tables


def summed(tables, n_outputs, keep=lambda i, s, o: True):
    F = np.zeros((len(NEW), n_outputs))
    for (i, s, o), value in tables.items():
        if keep(i, s, o):
            F[:, o] += value
    return F


def in_order(values, rows):
    return np.take_along_axis(values, np.argsort(rows, axis=1)[:, :, None], axis=1)


@pytest.mark.parametrize("weights", [None, W], ids=["equal", "weighted"])
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", MODELS)
def test_parts_against_the_long_way(name, labels, weights):
    model = made(name, LABELS[labels], w=weights)
    found = model.influence(NEW, top=None)
    np.testing.assert_allclose(found.contribution.sum(axis=1), model.scores(NEW), atol=1e-8)
    np.testing.assert_allclose(found.by_label.sum(axis=1), model.scores(NEW), atol=1e-8)
    np.testing.assert_allclose(found.own + found.others, found.score)
    w = np.ones(N) if weights is None else weights
    codes, O = model.training_record_.codes, found.score.shape[1]
    known = (codes >= 0).mean(axis=1)
    ridge = 0.02 * np.sum(w * known)
    tables = long_way(model, codes, w, NEW, ridge)
    np.testing.assert_allclose(found.score, summed(tables, O), atol=1e-8)
    for s in range(T):
        np.testing.assert_allclose(found.by_label[:, s], summed(tables, O, lambda i, u, o, s=s: u == s), atol=1e-8)
    contribution, own = (in_order(a, found.rows) for a in (found.contribution, found.own_contribution))
    effect, of = in_order(found.effect, found.rows), found.output_label
    for i in range(0, N, 5):
        np.testing.assert_allclose(contribution[:, i], summed(tables, O, lambda j, s, o, i=i: j == i), atol=1e-8)
        mine = summed(tables, O, lambda j, s, o, i=i: j == i and s == of[o])
        np.testing.assert_allclose(own[:, i], mine, atol=1e-8)
        without = summed(long_way(model, codes, w, NEW, ridge, skip=i), O)
        np.testing.assert_allclose(effect[:, i], found.score - without, atol=1e-8)
    size = np.abs(found.effect).max(axis=2)
    assert np.all(np.diff(size, axis=1) <= 1e-15)
    assert size[:, 0].min() > 1e-4


@pytest.mark.parametrize("labels", ["known", "in part"])
@pytest.mark.parametrize("name", ["alike", "differences, penalties"])
def test_effects_are_those_of_refits(name, labels):
    model, table = made(name, LABELS[labels]), LABELS[labels]
    found = model.influence(NEW, top=None)
    effect, mass = in_order(found.effect, found.rows), (~np.isnan(table)).mean(axis=1)
    for i in range(0, N, 4):
        keep = np.delete(np.arange(N), i)
        other = made(name, table, keep, alpha=0.02 * mass.sum() / mass[keep].sum())
        np.testing.assert_allclose(effect[:, i], model.scores(NEW) - other.scores(NEW), atol=1e-7)


def test_labels_alone_owe_nothing_to_others():
    for table in (Y, PART):
        found = made("alone", table).influence(NEW, top=None)
        np.testing.assert_allclose(found.others, 0, atol=1e-12)
        np.testing.assert_allclose(found.own_contribution, found.contribution, atol=1e-12)
    assert np.abs(made("learned").influence(NEW).others).max() > 1e-3


def test_an_unknown_label_says_nothing_itself():
    """Its row speaks by its other labels alone."""
    found = made("learned", PART).influence(NEW, top=None)
    own = in_order(found.own_contribution, found.rows)
    for t in range(T):
        lost = np.isnan(PART[:, t])
        assert lost.any()
        assert np.all(own[:, lost][:, :, found.output_label == t] == 0)
    target = in_order(found.target, found.rows)
    np.testing.assert_array_equal(target[0][:, found.output_label == 1][:, 0], PART[:, 1])


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(0, T - 1), min_size=1, max_size=T, unique=True), st.sampled_from(["known", "in part"]))
def test_some_labels_are_a_part_of_all(asked, labels):
    model = made("intercepts", LABELS[labels])
    whole, some = model.influence(NEW, None), model.influence(NEW, None, labels=asked)
    columns = [c for t in asked for c in np.flatnonzero(whole.output_label == t)]
    assert [some.labels[t] for t in some.output_label] == [t for t in asked for _ in range(2)]
    for name in ("contribution", "own_contribution", "effect"):
        one, other = (in_order(getattr(found, name), found.rows) for found in (whole, some))
        np.testing.assert_allclose(other, one[:, :, columns], atol=1e-10)
    np.testing.assert_allclose(some.by_label, whole.by_label[:, :, columns], atol=1e-10)
    np.testing.assert_allclose(some.own, whole.own[:, columns], atol=1e-10)


def test_top_rows_are_those_of_the_label_that_was_asked_for():
    model = made("learned")
    for t in range(T):
        found = model.influence(NEW, top=3, labels=t)
        every = model.influence(NEW, top=None, labels=t)
        size = np.abs(every.effect).max(axis=2)
        assert (np.sort(size, axis=1)[:, -1] == np.abs(found.effect).max(axis=2)[:, 0]).all()
        assert (found.rows == every.rows[:, :3]).all()


def test_the_only_known_value_of_a_label_with_an_intercept():
    """Without it the label is not known, and the others stay as they are."""
    table = PART.copy()
    table[1:, 3] = np.nan
    table[0] = [1, np.nan, 0, 1]
    with pytest.warns(UserWarning, match="one class only"):
        model = made("intercepts", table)
    found = model.influence(NEW, top=None)
    effect = in_order(found.effect, found.rows)[:, 0]
    assert np.isnan(effect[:, found.output_label == 3]).all()
    assert np.isfinite(effect[:, found.output_label < 3]).all()
    assert (found.rows[:, 0] == 0).all()


def test_searched_models_frames_and_one_label():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(PART, columns=["sea", "sand", "sun", "snow"])
    model = MultiLabelLSPC(random_state=0, tol=1e-9).fit(X, frame)
    found = model.influence(NEW, 4, labels="sun")
    np.testing.assert_allclose(found.score, model.scores(NEW)[:, 4:6], atol=1e-6)
    lines = found.to_frame()
    names = ["prediction", "row", "label", "target", "output", "contribution", "own_contribution", "effect"]
    assert lines.columns.tolist() == names
    assert len(lines) == 3 * 4 * 2
    assert set(lines["label"]) == {"sun"}
    assert "label sun" in str(found)
    assert "from the label itself" in str(found)
    assert len(found[1]) == 1
    assert "more labels" in str(model.influence(NEW))
    flat = MultiLabelLSPC(**FIXED).fit(X, np.where(Y[:, 0] == 1, "yes", "no"))
    told = flat.influence(NEW, top=None)
    np.testing.assert_allclose(told.score, flat.scores(NEW), atol=1e-9)
    assert told.outputs == ["no", "yes"]
    np.testing.assert_allclose(told.others, 0, atol=1e-12)


def test_single_precision_chunks_and_rows_without_a_weight(monkeypatch):
    single = MultiLabelLSPC(**FIXED).fit(X.astype(np.float32), Y)
    np.testing.assert_allclose(single.influence(NEW).score, single.scores(NEW.astype(np.float32)), atol=1e-4)
    w = np.ones(N)
    w[[0, 7]] = 0
    model = made("learned", w=w)
    whole = model.influence(NEW, top=None)
    assert whole.rows.shape == (3, N - 2)
    assert not np.isin([0, 7], whole.rows).any()
    monkeypatch.setattr("leastwise.problem.basis.CHUNK", 1)
    np.testing.assert_allclose(model.influence(NEW, top=None).effect, whole.effect, atol=1e-12)


def test_bad_input(monkeypatch):
    model = made("alike", PART)
    with pytest.raises(ValueError, match="must be names of labels"):
        model.influence(NEW, labels="nothing")
    with pytest.raises(ValueError, match="top"):
        model.influence(NEW, top=0)
    for changes in ({"n_centers": 5}, {"norm": "coefficients"}):
        with pytest.raises(ValueError, match="every training row"):
            made("learned", **changes).influence(NEW)
    monkeypatch.setenv("LEASTWISE_MEMORY", "20000")
    with pytest.raises(MemoryError, match="known labels"):
        model.influence(NEW)

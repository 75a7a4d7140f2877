"""One change, one place: a toy kernel, scoring, calibrator, similarity rule, solver and source, each a few lines.

Every part is registered once and goes through fit, streams, model files, ONNX or its refusal, plans, displays and
reports.
"""

import inspect
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
from conftest import blobs
from onnx_cases import agrees, run, somewhere
from toy_parts import Cauchy, Sharpened

import leastwise as lw
from leastwise import LSPC, LSSVC, LSSVR, MultiLabelLSPC, MultiTaskLSPC, MultiTaskLSSVC, MultiTaskLSSVR
from leastwise.calibration.calibrators import CALIBRATIONS, Calibration
from leastwise.calibration.label_calibrators import fit_label_clip
from leastwise.displays import SelectionDisplay, SimilarityDisplay
from leastwise.fitting.direct import Fitted, make_problem
from leastwise.fitting.ridge_problem import choose
from leastwise.model_selection.label_objective import LABEL_SCORINGS, register_label_scoring
from leastwise.model_selection.objective import (
    CLASS_SCORINGS,
    VALUE_SCORINGS,
    register_class_scoring,
    register_value_scoring,
)
from leastwise.onnx import registry as onnx_registry
from leastwise.onnx import to_onnx
from leastwise.onnx.models import KernelMatrix, squared_distances
from leastwise.persistence import FileError
from leastwise.persistence import registry as file_registry
from leastwise.persistence.fields import Floats, Real
from leastwise.problem.inputs import SCALES, Scale, register_scale
from leastwise.problem.kernels import KERNELS, register_kernel
from leastwise.problem.label_coupling import LABEL_SIMILARITIES, register_label_similarity
from leastwise.problem.similarity import TASK_SIMILARITIES, register_task_similarity
from leastwise.report import write_report
from leastwise.solvers.choose import SOLVERS, Solver, register_solver, solver_names
from leastwise.solvers.costs import Stage
from leastwise.solvers.solve import Solution
from leastwise.solvers.work import Work
from leastwise.sources import open_blocks
from leastwise.sources.memory import IteratorSource
from leastwise.sources.opening import SOURCES, register_source
from leastwise.sources.predictions import predict_blocks

TABLES = (
    KERNELS,
    SCALES,
    CLASS_SCORINGS,
    VALUE_SCORINGS,
    LABEL_SCORINGS,
    CALIBRATIONS,
    TASK_SIMILARITIES,
    LABEL_SIMILARITIES,
    SOLVERS,
    file_registry.ENTRIES,
    onnx_registry.kernels.entries,
    onnx_registry.scales.entries,
    onnx_registry.calibrators.entries,
)
X, Y = blobs(90, c=2, seed=3)
NEW = somewhere(X)
TASK = np.arange(90) % 3
LABELS = np.stack([Y, 1 - Y, TASK == 0], axis=1).astype(int)
FIXED = {"sigma": 1.5, "alpha": 0.01, "random_state": 0}


@pytest.fixture(autouse=True)
def _own_tables():
    """Whatever a test registers is gone afterwards."""
    saved, kinds = [dict(table) for table in TABLES], list(SOURCES)
    yield
    for table, before in zip(TABLES, saved, strict=True):
        table.clear()
        table.update(before)
    SOURCES[:] = kinds


def saved_and_loaded(model, path, **more):
    """The same predictions from a file."""
    lw.save(model, path)
    back = lw.load(path)
    np.testing.assert_array_equal(back.predict_proba(NEW, **more), model.predict_proba(NEW, **more))
    return back


def page(model, path, **more):
    """The text of a report on a model."""
    return write_report(model, path, **more).read_text()


# ----------------------------------------------------------------------- kernels


def test_a_kernel(tmp_path):
    with pytest.raises(ValueError, match=r"Unknown kernel 'toy': use one of \['laplace', 'linear', 'poly'"):
        LSPC(kernel="toy").fit(X, Y)
    register_kernel("toy")(Cauchy)
    with pytest.raises(ValueError, match=r"Unknown kernel 'tox': .*'sigmoid', 'toy'\]"):
        LSPC(kernel="tox").fit(X, Y)

    model = LSPC(kernel="toy", **FIXED).fit(X, Y)
    D = np.sum((X[:, None] - X) ** 2, axis=2)
    ridge = len(X) * model.alpha_ * np.eye(len(X))
    by_hand = np.linalg.solve(1 / (1 + D / 1.5**2) + ridge, np.eye(2)[Y])
    np.testing.assert_allclose(model.coef_, by_hand, rtol=1e-8)
    assert type(saved_and_loaded(model, tmp_path / "model.lw").kernel_) is Cauchy
    assert "kernel.toy" in lw.persistence.info(tmp_path / "model.lw").classes
    assert "toy" in page(model, tmp_path / "page.html")

    stream = LSPC(kernel="toy", n_centers=20, **FIXED).fit_stream(X, Y)
    memory = LSPC(kernel="toy", n_centers=20, **FIXED, solver="moments").fit(X, Y)
    np.testing.assert_allclose(stream.predict_proba(NEW), memory.predict_proba(NEW), atol=1e-6)

    del KERNELS["toy"]
    with pytest.raises(FileError, match=r"class 'kernel\.toy', which is not registered"):
        lw.load(tmp_path / "model.lw")


@dataclass(frozen=True, eq=False)
class Largest(Scale):
    """Divides each column by its largest absolute value."""

    unit: np.ndarray

    @classmethod
    def fit(cls, X, w):
        return cls(np.abs(X).max(axis=0))

    def transform(self, X):
        return X / self.unit


def test_a_scale(tmp_path):
    with pytest.raises(ValueError, match=r"scale='toy' is not known: .*'quantile'\]"):
        LSPC(scale="toy").fit(X, Y)
    register_scale("toy", fields={"unit": Floats("n_numbers", low=0)})(Largest)
    model = LSPC(scale="toy", **FIXED).fit(1e3 * X, Y)
    by_hand = LSPC(**FIXED).fit(X / np.abs(X).max(axis=0), Y)
    np.testing.assert_allclose(model.coef_, by_hand.coef_, rtol=1e-8)
    assert type(saved_and_loaded(model, tmp_path / "model.lw").inputs_.rule) is Largest
    assert "inputs.toy" in lw.persistence.info(tmp_path / "model.lw").classes
    assert "toy" in page(model, tmp_path / "page.html")
    stream = LSPC(scale="toy", n_centers=20, **FIXED).fit_stream(1e3 * X, Y)
    np.testing.assert_allclose(np.abs(stream.inputs_(1e3 * X)).max(axis=0), 1)

    with pytest.raises(TypeError, match="The scale Largest has no ONNX converter"):
        to_onnx(model)

    @onnx_registry.scales.register(Largest)
    def largest(g, rule, rows):
        return rows * (1 / rule.unit)

    agrees(model, 1e3 * NEW, dtype="float64")


def test_a_kernel_in_a_sum_for_tasks_and_for_labels():
    with pytest.raises(ValueError, match=r"out of \['laplace', 'linear', 'rbf'\]"):
        LSSVC(kernel="toy+linear").fit(X, Y)
    register_kernel("toy")(Cauchy)
    with pytest.raises(ValueError, match=r"out of \['laplace', 'linear', 'rbf', 'toy'\]"):
        LSSVC(kernel="toy+poly").fit(X, Y)
    assert LSSVC(kernel="toy+linear", **FIXED).fit(X, Y).score(X, Y) > 0.7
    assert MultiTaskLSPC(kernel="toy", **FIXED).fit(X, Y, tasks=TASK).score(X, Y, tasks=TASK) > 0.7
    assert MultiLabelLSPC(kernel="toy", **FIXED).fit(X, LABELS).predict(X).shape == LABELS.shape


def test_a_kernel_in_onnx():
    register_kernel("toy")(Cauchy)
    model = LSPC(kernel="toy", **FIXED).fit(X, Y)
    with pytest.raises(
        ValueError, match=r"The kernel Cauchy has no ONNX converter; there are converters for Laplace"
    ):
        to_onnx(model)

    @onnx_registry.kernels.register(Cauchy)
    def cauchy(g, kernel, rows, centers, sigma):
        D = squared_distances(rows, centers)
        return KernelMatrix(1.0 / (D * (1 / sigma**2) + 1.0), D, squared=True)

    agrees(model, NEW, dtype="float64")


# ---------------------------------------------------------------------- scorings


def test_a_scoring_of_classes(tmp_path, capsys):
    with pytest.raises(ValueError, match=r"scoring='toy' is not known: use one of \['accuracy', 'auc', 'brier'"):
        LSPC(scoring="toy").fit(X, Y)

    @register_class_scoring("toy", loss=True)
    def absolute_error(sample, calibrator, classes):
        p = calibrator.proba(sample.F)[np.arange(len(sample.y)), sample.y]
        return -float(np.average(1 - p, weights=sample.w))

    with pytest.raises(ValueError, match=r"'task_auc', 'toy'\], a name that"):
        LSPC(scoring="tox").fit(X, Y)
    model = LSPC(scoring="toy", random_state=0, verbose=1).fit(X, Y)
    best = -model.cv_results_["mean_test_score"].max()
    assert 0 < best < 0.5
    assert f"toy {best:.5g}" in capsys.readouterr().out  # a loss is shown without its minus
    pytest.importorskip("matplotlib").use("agg")
    axes = SelectionDisplay.from_estimator(model).plot().ax_
    assert "toy" in " ".join([axes.get_title(), *(a.get_ylabel() for a in axes.figure.axes)])
    assert "toy" in page(model, tmp_path / "page.html")
    saved_and_loaded(model, tmp_path / "model.lw")
    agrees(model, NEW, dtype="float64")
    stream = LSPC(scoring="toy", n_centers=20, random_state=0).fit_stream(X, Y)
    assert stream.cv_results_["mean_test_score"].max() < 0


def test_a_scoring_of_values(tmp_path):
    y = X[:, 0] + np.sin(X[:, 1])
    with pytest.raises(ValueError, match=r"use one of \['cautious', 'mae', 'mse', 'r2', 'task_r2'\]"):
        LSSVR(scoring="toy").fit(X, y)

    @register_value_scoring("toy", loss=True)
    def largest_error(Z, F, w, task):
        return -float(np.abs(Z - F).max())

    model = LSSVR(scoring="toy", random_state=0).fit(X, y)
    held = np.abs(model.heldout_prediction_ - y).max()
    assert model.cv_results_["mean_test_score"].max() == pytest.approx(-held, rel=1e-6)
    stream = LSSVR(scoring="toy", n_centers=20, random_state=0).fit_stream(X, y)
    assert stream.cv_results_["mean_test_score"].max() < 0
    for each in (model, stream):
        lw.save(each, tmp_path / "model.lw")
        np.testing.assert_array_equal(lw.load(tmp_path / "model.lw").predict(NEW), each.predict(NEW))
        values = run(to_onnx(each, dtype="float64"), NEW)["variable"]
        np.testing.assert_allclose(values.ravel(), each.predict(NEW), rtol=1e-9, atol=1e-9)
    assert "toy" in page(model, tmp_path / "page.html")


def test_a_scoring_of_labels(tmp_path):
    with pytest.raises(ValueError, match=r"use one of \['accuracy', 'auc', 'average_precision'"):
        MultiLabelLSPC(scoring="toy").fit(X, LABELS)

    @register_label_scoring("toy", decides=True)
    def precision(sample, P, D):
        found = sample.W * (D > 0)
        return float(np.sum(found * (sample.codes == D)) / max(found.sum(), 1e-9))

    model = MultiLabelLSPC(scoring="toy", random_state=0).fit(X, LABELS)
    found = np.asarray(model.heldout_proba_) > 0.5
    assert model.cv_results_["mean_test_score"].max() == pytest.approx(np.mean(LABELS[found]), abs=0.02)
    stream = MultiLabelLSPC(scoring="toy", n_centers=20, random_state=0).fit_stream(X, LABELS)
    assert 0 < stream.cv_results_["mean_test_score"].max() <= 1
    for each in (model, stream):
        saved_and_loaded(each, tmp_path / "model.lw")
        agrees(each, NEW, dtype="float64")
    assert "toy" in page(model, tmp_path / "page.html")


# ------------------------------------------------------------------- calibrators


def test_a_calibrator(tmp_path):
    with pytest.raises(ValueError, match=r"calibration='toy' is not known: use one of \['blend', 'temperature'"):
        LSPC(calibration="toy").fit(X, Y)
    CALIBRATIONS["toy"] = Calibration(
        lambda sample, start, credibility: Sharpened(sample.shares),
        lambda sample, start, pooled, pull, shrink: fit_label_clip(sample),
    )
    model = LSPC(calibration="toy", **FIXED).fit(X, Y)
    assert type(model.calibrator_) is Sharpened
    assert type(LSPC(calibration="toy", n_centers=20, **FIXED).fit_stream(X, Y).calibrator_) is Sharpened
    assert MultiLabelLSPC(calibration="toy", **FIXED).fit(X, LABELS).predict(X).shape == LABELS.shape
    assert "toy" in page(model, tmp_path / "page.html")

    with pytest.raises(FileError, match=r"model.calibrator_ is a toy_parts.Sharpened, which cannot be stored"):
        lw.save(model, tmp_path / "model.lw")
    fields = {"shares": Floats("n_classes"), "power": Real(low=0)}
    file_registry.register(Sharpened, "toy.Sharpened", "calibrator", fields)
    saved_and_loaded(model, tmp_path / "model.lw")
    with pytest.raises(TypeError, match=r"The calibrator Sharpened has no ONNX converter"):
        to_onnx(model)

    @onnx_registry.calibrators.register(Sharpened)
    def sharpened(g, calibrator, F, in_domain):
        P = g.node("Pow", F.maximum(0.0) + 1e-3, calibrator.power)
        P = P / P.sum(-1)
        return P * in_domain + (1.0 - in_domain) * calibrator.shares

    agrees(model, NEW, dtype="float64")


# --------------------------------------------------------------------- couplings


def test_a_similarity_of_tasks(tmp_path):
    with pytest.raises(ValueError, match=r"use one of \['shared', 'learned', 'correlation', 'inputs'\]"):
        MultiTaskLSPC(similarity="toy").fit(X, Y, tasks=TASK)

    @register_task_similarity("toy", max_tasks=3)
    def neighbours(rows):
        t = np.arange(rows.task.max() + 1)
        return np.minimum(1.0, 1.5 - np.abs(t[:, None] - t) / 2)

    with pytest.raises(ValueError, match=r"use one of \['shared', 'learned', 'correlation', 'inputs', 'toy'\]"):
        MultiTaskLSPC(similarity="tox").fit(X, Y, tasks=TASK)
    with pytest.raises(ValueError, match=r"at most 3 tasks; there are 4. Use 'correlation', 'inputs'"):
        MultiTaskLSPC(similarity="toy").fit(X, Y, tasks=np.arange(90) % 4)
    model = MultiTaskLSPC(similarity="toy", sharing=0.5, **FIXED).fit(X, Y, tasks=TASK)
    S = np.array([[1, 1, 0.5], [1, 1, 1], [0.5, 1, 1]])
    same = MultiTaskLSPC(similarity=S, sharing=0.5, **FIXED).fit(X, Y, tasks=TASK)
    assert model.sharing_ == same.sharing_ == 0.5
    tasks = np.arange(len(NEW)) % 3
    scores = [m.decision_function(NEW, tasks=tasks) for m in (model, same)]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-6)
    saved_and_loaded(model, tmp_path / "model.lw", tasks=tasks)
    agrees(model, NEW, tasks, dtype="float64")
    pytest.importorskip("matplotlib").use("agg")
    assert SimilarityDisplay.from_estimator(model).plot() is not None
    assert "Similarity of tasks" in page(model, tmp_path / "page.html")
    blocks = {"X": X, "y": Y, "tasks": TASK}
    with pytest.raises(ValueError, match="and similarity='shared'"):
        MultiTaskLSPC(similarity="toy", n_centers=20).fit_stream(lambda: [blocks])


@pytest.mark.parametrize("covariance", [False, True])
def test_a_similarity_of_labels(covariance, tmp_path):
    with pytest.raises(ValueError, match=r"use one of \['learned', 'shared', 'correlation'\]"):
        MultiLabelLSPC(similarity="toy").fit(X, LABELS)

    @register_label_similarity("toy", sharings=(0.0, 0.6), covariance=covariance)
    def agreement(codes, W, classes, size):
        return np.mean(codes[:, :, None] == codes[:, None], axis=0)

    with pytest.raises(ValueError, match=r"similarity=7; .*, 'correlation', 'toy'\."):
        MultiLabelLSPC(similarity=7).fit(X, LABELS)
    model = MultiLabelLSPC(similarity="toy", **FIXED).fit(X, LABELS)
    assert set(model.cv_results_["param_sharing"]) == {0.0, 0.6}
    S = np.mean(LABELS[:, :, None] == LABELS[:, None], axis=0)
    np.testing.assert_allclose(model.similarity_, S)
    saved_and_loaded(model, tmp_path / "model.lw")
    assert to_onnx(model).graph.output
    assert "Similarity of labels" in page(model, tmp_path / "page.html")
    stream = MultiLabelLSPC(similarity="toy", n_centers=20, **FIXED).fit_stream(X, LABELS)
    np.testing.assert_allclose(stream.similarity_, S)


# ----------------------------------------------------------------------- solvers


def by_numpy(spec, data, settings):
    """One ridge, no intercept, by a general solver."""
    choice = choose(make_problem(spec, data, settings))
    best, rows = choice.outcome, data.rows
    K = settings.kernel(rows.X, rows.X, best.sigma)
    Z = rows.targets(settings.n_outputs)
    coef = np.linalg.solve(K + len(rows) * best.alpha * np.eye(len(rows)), Z)
    solution = Solution(coef, np.zeros(Z.shape[1]))
    return Fitted(choice, settings, choice.evaluator.basis, solution, True, best.alpha)


def one_stage(f):
    """Two thirds of a cube of the rows."""
    return [Stage("general solve", f.n, 1, Work(factors=2 / 3 * f.n**3), 3 * f.itemsize * f.n**2)]


def test_a_solver(tmp_path):
    with pytest.raises(
        ValueError, match=r"solver='toy' is not known: use one of \['auto', 'cholesky', 'moments', 'krylov', 'sgd'\]"
    ):
        LSPC(solver="toy").fit(X, Y)
    register_solver(
        Solver(
            "toy",
            ("single",),
            by_numpy,
            one_stage,
            needs=lambda spec, kernel: None if spec.every_row else "solver='toy' takes all rows as centres.",
        )
    )
    with pytest.raises(ValueError, match=r"\['auto', 'cholesky', 'moments', 'krylov', 'sgd', 'toy'\]"):
        LSPC(solver="tox").fit(X, Y)
    with pytest.raises(ValueError, match=r"use one of \['auto', 'cholesky', 'moments', 'krylov'\]"):
        LSSVC(solver="toy").fit(X, Y)
    with pytest.raises(ValueError, match="solver='toy' takes all rows as centres"):
        LSPC(solver="toy", n_centers=5).fit(X, Y)
    with pytest.raises(ValueError, match="solver='toy' does not work on streams: use 'auto' or 'moments'"):
        LSPC(solver="toy").fit_stream(X, Y)

    plan = LSPC(solver="toy").plan((1000, 5))
    steps = {step.what: step.flops for step in plan.steps}
    assert plan.solver == "toy"
    assert steps["general solve"] == pytest.approx(2 / 3 * 1e9)
    assert plan.flops == pytest.approx(sum(steps.values()) - steps["predict 1,000 rows"])
    model, exact = LSPC(solver="toy", **FIXED).fit(X, Y), LSPC(**FIXED).fit(X, Y)
    np.testing.assert_allclose(model.coef_, exact.coef_, rtol=1e-8)
    np.testing.assert_array_equal(model.heldout_proba_, exact.heldout_proba_)
    saved_and_loaded(model, tmp_path / "model.lw")
    agrees(model, NEW, dtype="float64")
    assert "toy" in page(model, tmp_path / "page.html")


def test_a_solver_that_does_not_fit_in_memory(monkeypatch):
    monkeypatch.setenv("LEASTWISE_MEMORY", "100KB")
    toy = Solver("toy", ("single",), by_numpy, one_stage)
    register_solver(toy)
    assert not LSPC(solver="toy").plan((90, 2)).fits
    with pytest.raises(MemoryError, match=r"90 rows with 90 basis functions need about .* with solver='toy'"):
        LSPC(solver="toy", **FIXED).fit(X, Y)
    register_solver(replace(toy, by_blocks=True))  # what works by blocks may take a little whatever the limit
    assert LSPC(solver="toy").plan((90, 2)).fits


# ----------------------------------------------------------------------- sources


@dataclass(frozen=True)
class Shards:
    """Rows in named parts, as a store of another package has them."""

    parts: dict

    def read(self):
        return [self.parts[name] for name in sorted(self.parts)]


def test_a_source(tmp_path):
    shards = Shards({name: (X[k::3], Y[k::3]) for k, name in enumerate("abc")})
    with pytest.raises(
        lw.sources.StreamError, match=r"Shards is not a source of rows: give the path of a file, .*array"
    ):
        open_blocks(shards)

    @register_source("shards", lambda source: isinstance(source, Shards))
    def open_shards(source, roles, beside, block_rows):
        return IteratorSource(source.read, roles, block_rows, repeatable=True)

    with pytest.raises(lw.sources.StreamError, match="int is not a source of rows: give shards, the path of a file"):
        open_blocks(7)
    assert [len(block) for block in open_blocks(shards, block_rows=25)] == [25, 5] * 3
    model = LSPC(n_centers=20, **FIXED).fit_stream(shards)
    order = np.concatenate([np.arange(90)[k::3] for k in range(3)])
    same = LSPC(n_centers=20, **FIXED).fit_stream(X[order], Y[order])
    np.testing.assert_allclose(model.predict_proba(NEW), same.predict_proba(NEW), atol=1e-10)
    asked = np.concatenate(list(predict_blocks(model, Shards({"a": NEW}))))
    np.testing.assert_array_equal(asked, model.predict_proba(NEW))
    saved_and_loaded(model, tmp_path / "model.lw")
    agrees(model, NEW, dtype="float64")
    assert "90 held-out training rows" in page(model, tmp_path / "page.html")


# ------------------------------------------------------------------------- docs

ESTIMATORS = [LSPC, LSSVC, LSSVR, MultiLabelLSPC, MultiTaskLSPC, MultiTaskLSSVC, MultiTaskLSSVR]


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_docstrings_name_all_that_is_registered(cls):
    spec = cls()._spec()
    scorings = {"classes": CLASS_SCORINGS, "values": VALUE_SCORINGS, "labels": LABEL_SCORINGS}[spec.targets.kind]
    named = {
        "kernel": KERNELS,
        "solver": solver_names(spec.family),
        "scoring": [n for n in scorings if not n.startswith("neg_") and (spec.many_tasks or "task" not in n)],
    }
    if "calibration" in cls().get_params():
        named["calibration"] = CALIBRATIONS
    if spec.many_tasks:
        named["similarity"] = ["shared", *TASK_SIMILARITIES]
    if spec.many_labels:
        named["similarity"] = LABEL_SIMILARITIES
    missing = {}
    for parameter, names in named.items():
        entry = re.search(rf"^{parameter} : .*\n(?: .*\n)*", inspect.cleandoc(cls.__doc__), re.MULTILINE).group()
        missing[parameter] = [n for n in names if (f'"{n}"' if isinstance(n, str) else str(n)) not in entry]
    assert not any(missing.values()), missing

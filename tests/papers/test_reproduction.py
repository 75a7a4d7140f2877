"""The papers' experiments: what is printed, what is missing, what is written; and shortcuts against the long way."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import DATA

from leastwise import LSSVR, KernelLogisticRegression, MultiTaskLSPC
from leastwise.datasets import make_three_class, three_class_posterior
from leastwise.datasets.loading import REGISTRY
from papers import PAPERS, DataAbsent, reproduce
from papers.__main__ import COMMON, main, parser
from papers._common import output
from papers._common.experiments import Job
from papers._common.output import markdown, table
from papers.lspc import three_classes
from papers.lspc.methods import TextbookKLR
from papers.lspc_mt import draws, methods
from papers.lspc_mt.comparison import SIX, TABLE_1, TABLE_2, TABLE_3, TABLE_4
from papers.ml_lspc.methods import PAPERS as LABEL_METHODS
from papers.ml_lspc.tables import SECTION_6_2
from papers.mtls_svm import dermatology, school, school_data
from papers.mtls_svm.grid import Machine, grid_search, rbf, width
from papers.mtls_svm.tables import TABLE_2 as EXPLAINED
from papers.mtls_svm.tables import TABLE_3 as ERRORS

EXPERIMENTS = [(p, e) for p in PAPERS.values() for e in p.experiments]
#: Every experiment without data, as small as it goes.
TINY = {
    ("lspc", "three-classes"): {"runs": 1, "rows": 60},
    ("lspc-mt", "made"): {"runs": 1, "sizes": (6,), "klr_runs": 1, "klr_points": 1, "default_runs": 0},
    ("ml-lspc", "toy"): {"runs": 2, "rows": 60, "test_rows": 40, "labels": (3,), "features": 4, "more_runs": 1},
    ("ml-lspc", "solve"): {"rows": 30, "labels": (3,), "features": 4, "direct_rows": 20, "direct_labels": (3,)},
    ("mtls-svm", "made"): {"runs": 1, "only": ("MTLS", "same")},
}


PICTURES = dict(zip(TINY, (3, 1, 1, 1, 0), strict=True))


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.delenv("LEASTWISE_DATA", raising=False)


class Lines(list):
    """Keeps what is reported."""

    __call__ = list.append

    @property
    def text(self):
        return "\n".join(self)


# ------------------------------------------------------------------- registry


def test_the_registry_is_complete():
    assert list(PAPERS) == ["lspc", "lspc-mt", "ml-lspc", "mtls-svm"]
    records = [e.record for _, e in EXPERIMENTS]
    assert len(set(records)) == len(records)
    for _, e in EXPERIMENTS:
        assert set(e.needs) <= set(REGISTRY)
        assert e.role in ("paper", "stand-in", "beyond")
        assert set(e.usual) | set(e.quick) <= set(e.options)
        assert e.made(False, {}) != e.made(True, {})
        assert "instead of" in e.changed(e.made(True, {}))
        assert e.changed(e.made(False, {})) == ""
    assert {(p.name, e.name) for p, e in EXPERIMENTS if not e.needs} == set(TINY)
    for paper in PAPERS.values():  # something runs without any file
        assert any(not e.needs for e in paper.experiments)


def test_figures_of_the_papers():
    """Some by hand, from the papers' pages."""
    assert TABLE_3[20][SIX.index("LSPC-MT")] == (0.714, 0.830)
    assert TABLE_3[35] == (
        (0.795, 0.838),
        (0.806, 0.849),
        (0.627, 0.734),
        (0.684, 0.771),
        (0.428, 0.742),
        (0.663, 0.797),
    )
    assert TABLE_1[3][0] == (0.763, 1.0)
    assert TABLE_1[8][-1] == (0.979, 1.0)
    assert TABLE_4[35][:2] == ((37.2, 98.9), (5960, 18200))
    assert TABLE_2[7][4] == (0.990, 6.65)
    assert {k: v[0] for k, v in SECTION_6_2.items()} == {
        "LSPC": 0.556,
        "ML-LSPC": 0.561,
        "ML-kNN": 0.372,
        "InsDif": 0.526,
    }
    assert EXPLAINED["MTLS-SVM"] == (38.16, 0.3)
    assert EXPLAINED["LS-SVM"] == (9.8, 0.6)
    assert ERRORS["MTLS-SVM"] == (8.2, 2.7)


@pytest.mark.parametrize("printed", [TABLE_1, TABLE_2, TABLE_3, TABLE_4])
def test_ranges_are_ranges(printed):
    assert all(len(row) == 6 and all(low <= high for low, high in row) for row in printed.values())


def test_every_printed_method_has_one_of_ours():
    assert set(SECTION_6_2) <= set(LABEL_METHODS)
    assert set(EXPLAINED) <= {name.partition(",")[0] for name in school.SCHOOL}
    assert set(ERRORS) - {name.partition(",")[0] for name in dermatology.METHODS} == {
        "independent, RBF, of another paper"
    }


# -------------------------------------------------------------------- running


@pytest.mark.parametrize("case", TINY, ids="-".join)
def test_what_needs_no_data_runs(case, tmp_path, no_data):
    paper, part = case
    lines = Lines()
    found = reproduce(paper, parts=[part], output=tmp_path, report=lines, **TINY[case])
    (experiment,) = [e for p, e in EXPERIMENTS if (p.name, e.name) == case]
    record = json.loads((tmp_path / f"{experiment.record}.json").read_text())
    assert record["machine"]["command"].startswith(f"python -m papers {paper} --parts {part}")
    kept = json.loads(json.dumps(found["results"][part], default=output._plain))
    assert {k: v for k, v in record.items() if k != "machine"} == kept
    assert found["skipped"] == {}
    assert experiment.title in lines.text
    assert not list(tmp_path.glob("*.part"))
    if "matplotlib" in sys.modules:
        assert len(list(tmp_path.glob(f"{experiment.record}_*.png"))) == PICTURES[case]


def test_the_direct_solve_and_the_spectra_agree(no_data):
    found = reproduce("ml-lspc", parts=["solve"], report=Lines(), **TINY["ml-lspc", "solve"])["results"]["solve"]
    gaps = {f["method"]: f["difference"] for f in found["figures"] if "difference" in f}
    assert gaps["direct"] < 1e-8
    assert gaps["CG + factor"] < 1e-4


def test_distance_to_the_true_posterior_by_loops():
    X, y = make_three_class(40, random_state=0)
    model = three_classes.models(X, y)["LSPC"]
    long_way = [sum((model.predict_proba(x[None])[0] - three_class_posterior(x[None])[0]) ** 2) for x in X]
    assert three_classes.distance(model.predict_proba, X) == pytest.approx(np.mean(long_way))


def test_without_data_it_says_which_files_to_get(no_data):
    lines = Lines()
    found = reproduce(
        "lspc-mt", runs=1, sizes=[6], klr_runs=0, klr_points=0, default_runs=0, slow_runs=0, report=lines
    )
    assert set(found["skipped"]) == {"umist", "landmine"}
    assert list(found["results"]) == ["made"]
    for word in (
        "LandmineData.mat",
        "landmine.npz",
        "umist_cropped.mat",
        "tables 3 and 4",
        "LEASTWISE_DATA",
        "--data",
    ):
        assert word in lines.text


def test_parts_without_their_data_are_an_error(no_data, tmp_path):
    with pytest.raises(DataAbsent, match=r"school_b\.mat"):
        reproduce("mtls-svm", parts=["school"], report=Lines())
    with pytest.raises(DataAbsent, match=r"enron-train\.arff"):
        reproduce("ml-lspc", parts=["enron"], data=tmp_path, report=Lines())
    (tmp_path / "school.mat").write_bytes(b"of MALSAR, without the splits")
    with pytest.raises(DataAbsent, match=r"school_1_indexes\.mat to school_10_indexes\.mat"):
        reproduce("mtls-svm", parts=["school"], data=tmp_path, report=Lines())
    with pytest.raises(DataAbsent, match="no such folder"):
        reproduce("ml-lspc", data=tmp_path / "nowhere", report=Lines())
    assert issubclass(DataAbsent, FileNotFoundError)


@pytest.mark.parametrize(
    ("paper", "options", "message"),
    [
        ("lspx", {}, "Unknown paper 'lspx': use one of"),
        ("lspc", {"parts": ["figure"]}, "Unknown part 'figure': use one of .*'three-classes'"),
        ("lspc", {"draws": 3}, "Unknown option 'draws' of lspc .*: use .*'runs'"),
        ("lspc", {"parts": ["three-classes"], "sets": ["usps"]}, "Unknown option 'sets'"),
        ("lspc", {"figure": 9}, "figure=9: use 7 or 8"),
        ("lspc", {"runs": -1}, r"runs=-1 \(random draws\) must be an integer of at least 1"),
        ("lspc", {"sets": ["usps", "iris"]}, "use 'mnist' or"),
        ("lspc-mt", {"draw": "down"}, "use 'up' or"),
        ("mtls-svm", {"parts": ["made"], "only": ["SVC"]}, "nothing to run: only="),
    ],
)
def test_what_is_not_known(paper, options, message, no_data):
    with pytest.raises(ValueError, match=message):
        reproduce(paper, report=Lines(), **options)


# ---------------------------------------------------------------------- files


def test_a_record_is_whole_or_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "record.json"
    output.write_json(path, {"a": np.float64(1.5), "b": np.arange(3)})
    assert json.loads(path.read_text()) == {"a": 1.5, "b": [0, 1, 2]}
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        output.write_json(path, {"a": object()})
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("the disk is full")))
    with pytest.raises(OSError, match="full"):
        output.write_json(path, {"a": 2})
    assert json.loads(path.read_text())["a"] == 1.5
    assert [p.name for p in path.parent.iterdir()] == ["record.json"]


def test_what_was_measured_before_a_stop_is_on_disk(tmp_path, no_data):
    def stop(line):
        if "run 1" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce("lspc", parts=["three-classes"], runs=3, rows=40, output=tmp_path, report=stop)
    record = json.loads((tmp_path / "lspc_three_classes.json").read_text())
    assert {f["run"] for f in record["figures"]} == {0, 1}


def test_pictures_are_drawn_or_a_line_says_why_not(tmp_path, monkeypatch, no_data):
    def absent(width, height):
        raise ImportError("Figures need matplotlib")

    panels = [[output.Panel("t", "x", "y", {"one": ([1, 2], [3, 4], [0.1, 0.2])}, from_zero=True)]]
    lines = Lines()
    output.pictured(None, lines, lambda path: 1 / 0)
    monkeypatch.setattr(output, "new_figure", absent)
    output.pictured(tmp_path / "a.png", lines, lambda path: output.draw_panels(path, panels))
    assert lines.text == "no figure a.png: Figures need matplotlib"
    monkeypatch.undo()
    pytest.importorskip("matplotlib")
    output.pictured(tmp_path / "new" / "a.png", lines, lambda path: output.draw_panels(path, panels))
    assert (tmp_path / "new" / "a.png").read_bytes().startswith(b"\x89PNG")


def test_tables_as_text():
    rows = [["a", 1, 0.12345], ["long name", None, 12345.6]]
    assert table("T", ["m", "n", "v"], rows).splitlines()[2:] == [
        "m          n      v",
        "a          1  0.123",
        "long name  -  12346",
    ]
    assert markdown("T", ["m", "n", "v"], rows).splitlines()[3:5] == ["| m | n | v |", "| --- | --- | --- |"]


# --------------------------------------------------------------- command line


def test_the_command_of_a_record_gives_the_same_settings(no_data):
    options = {"runs": 1, "rows": 60, "test_rows": 20, "labels": (3,), "features": 4, "only": ("ML-kNN", "Ins Dif")}
    found = reproduce("ml-lspc", parts=["toy"], quick=True, report=Lines(), **options)
    words = shlex.split(found["machine"]["command"].removeprefix("python -m papers "))
    args = vars(parser().parse_args(words))
    assert (args.pop("paper"), args.pop("parts"), args.pop("quick")) == ("ml-lspc", ["toy"], True)
    again = {k: tuple(v) if isinstance(v, list) else v for k, v in args.items() if v is not None and k not in COMMON}
    assert again == options


def test_the_command_line(capsys, no_data):
    assert main(["lspc", "--parts", "three-classes", "--runs", "1", "--rows", "40"]) == 0
    assert "Figure 6" in capsys.readouterr().out
    assert main(["lspc", "--parts", "figures"]) == 2
    assert "usps.t" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["lspc", "--help"])
    shown = capsys.readouterr().out
    assert "figures 7 and 8" in shown
    assert "--repeats" in shown


def test_the_library_does_not_import_it():
    code = "import sys, leastwise; print('papers' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
    )


# ------------------------------------------------------- shortcuts and loops


def test_the_textbook_form_has_the_minimum_of_the_library():
    X, y = make_three_class(60, random_state=1)
    book = TextbookKLR(1.5, 0.05).fit(X, y)
    model = KernelLogisticRegression(1.5, 0.05, bias=None, cv=None).fit(X, y)
    assert np.mean(book.predict(X) == model.predict(X)) == 1


def test_heldout_scores_of_tied_tasks_are_those_of_fits():
    draw = draws.made(3, 1)(12, 0, "up")
    pairs = [(0.0, 0.1), (0.5, 0.1), (1.0, 0.01)]
    for (sharing, alpha), (point, score) in zip(pairs, methods.lspc_heldout(draw, 1.3, pairs), strict=True):
        assert (point.sharing, point.alpha) == (sharing, alpha)
        for stay, out in draw.splits:
            model = MultiTaskLSPC(1.3, alpha, sharing, norm="coefficients", cv=None, calibration=None)
            F = model.fit(draw.X[stay], draw.y[stay], tasks=draw.task[stay]).scores(draw.X[out], tasks=draw.task[out])
            np.testing.assert_allclose(score[out], methods.odds(np.asarray(F), "auc"), rtol=1e-6, atol=1e-8)


def test_the_library_searches_the_same_scores():
    draw = draws.made(3, 1)(12, 0, "up")
    pairs = methods.ties("MT", draw.n_tasks)[:8]
    one = methods.lspc_heldout(draw, 1.3, pairs)
    two = methods.parts_heldout(methods.lspc_trial(draw), lambda F: methods.odds(F, "auc"), draw, 1.3, pairs)
    for (_, a), (_, b) in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_pooled_area_counts_pairs(rng):
    y, score = rng.integers(0, 2, 40), np.round(rng.normal(size=40), 1)
    pairs = [(a > b) + (a == b) / 2 for a in score[y == 1] for b in score[y == 0]]
    assert draws.pooled_auc(y, score) == pytest.approx(np.mean(pairs))


@pytest.mark.parametrize("way", draws.WAYS)
def test_rows_of_a_minefield(way):
    y = np.repeat([0, 1], [88, 12])
    taken = draws.mine_rows(np.arange(100), y, 20, way)
    assert len(taken) == len(set(taken)) == 20
    assert y[taken].sum() == {"up": 3, "nearest": 2, "equal": 10, "come": 0}[way]


def test_heldout_residuals_are_those_of_refits(rng):
    X, y = rng.normal(size=(15, 2)), rng.normal(size=15)
    residuals = Machine(rbf(X, X, -1), y[:, None]).residuals(4.0)[:, 0]
    for i in range(15):
        stay = np.arange(15) != i
        model = LSSVR(width(-1), 1 / (14 * 4.0), kernel="rbf", cv=None).fit(X[stay], y[stay])
        assert residuals[i] == pytest.approx(y[i] - model.predict(X[i : i + 1])[0], abs=1e-8)


def test_the_grid_grows_where_its_border_is_best():
    peak = (21, -4)
    choice = grid_search(
        lambda rest, first: np.array([-((g - peak[0]) ** 2) - (rest[0] - peak[1]) ** 2 for g in first]),
        range(-5, 16, 2),
        range(-10, 11, 2),
    )
    assert choice.at == peak
    assert choice.points == 15 * 11  # from -5 to 21, and one step more to see that it is the best
    flat = grid_search(lambda rest, first: np.zeros(len(first)), range(-5, 16, 2), range(-10, 11, 2))
    assert flat.points == 11 * 11


def test_errors_by_four_definitions():
    F = np.array([[1.0, -1, -1], [1, 1, -1], [-1, -1, -1]])
    found = dermatology.errors(np.array([0, 1, 2]), F)
    assert found == pytest.approx({"binary": 200 / 9, "class": 200 / 3, "any": 200 / 3, "sum": 200 / 3})


# ------------------------------------------------------------------ real data

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
#: Parts of the papers' experiments that take a second or two, where their figures are, and how close they have to be.
REAL = {
    "landmine": (
        "lspc-mt",
        {"runs": 1, "sizes": (20,), "klr_runs": 0, "klr_points": 0, "default_runs": 0, "slow_runs": 0},
    ),
    "figures": ("lspc", {"runs": 1, "sets": ("satimage",), "sizes": (100,), "figure": 7, "repeats": 1}),
    "enron": ("ml-lspc", {"runs": 1, "rows": 150, "test_rows": 100, "only": ("InsDif", "ML-kNN"), "more_runs": 0}),
    "school": ("mtls-svm", {"runs": 1, "inputs": ("standardised",), "only": ("MTLS-SVM", "mean")}),
    "dermatology": ("mtls-svm", {"runs": 1, "inputs": ("raw",), "only": ("same", "LSSVC")}),
}


@pytest.mark.parametrize("part", REAL)
def test_real_data_give_the_figures_of_the_record(part):
    paper, options = REAL[part]
    (experiment,) = [e for e in PAPERS[paper].experiments if e.name == part]
    if not any((DATA / f"{name}.npz").is_file() for name in experiment.needs):
        pytest.skip(f"needs {experiment.needs[0]}.npz in the folder LEASTWISE_DATA")
    lines = Lines()
    found = reproduce(paper, parts=[part], data=DATA, report=lines, **options)["results"][part]
    assert "paper" in lines.text
    record = RESULTS / f"{experiment.record}.json"
    if part == "enron" or not record.is_file():  # fewer rows than in the record, or no record beside the tests
        return
    old = json.loads(record.read_text())
    if part == "landmine":
        one, two = ({r["method"]: r["score"][0] for r in f["runs"] if r["n"] == 20} for f in (found, old))
        assert all(one[method] == pytest.approx(two[method], abs=0.01) for method in one)
        return
    keys, figure, tolerance = {
        "figures": (("figure", "data", "n", "c", "run", "method"), "error", 1.0),
        "school": (("method", "inputs", "run"), "total", 0.05),
        "dermatology": (("method", "inputs", "run"), "sum", 1.0),
    }[part]
    then = {tuple(f[k] for k in keys): f[figure] for f in old["figures"]}
    for f in found["figures"]:
        recorded = then[tuple(f[k] for k in keys)]
        if part == "dermatology" and "LSSVC" in f["method"]:  # errors of the library's own search may fall
            assert f[figure] <= recorded + tolerance
        else:
            assert f[figure] == pytest.approx(recorded, abs=tolerance)


def test_schools_without_splits_are_absent(monkeypatch):
    monkeypatch.setattr(school_data, "load_set", lambda name, folder: SimpleNamespace(splits=None))
    with pytest.raises(DataAbsent, match="no splits"):
        school_data.school_splits(None)


def test_a_job_keeps_nothing_by_default():
    assert Job().gathered([{"a": 1}]) == [{"a": 1}]
    assert Job().picture("figure7") is None

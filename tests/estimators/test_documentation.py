"""Docstrings of the estimators: complete, in order, and shared texts from one table."""

import doctest
import inspect
import math
import pickle
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import leastwise
from leastwise.estimators import docs
from leastwise.estimators.docs import documented, filled

NAMES = [
    "LSPC",
    "LSSVR",
    "LSSVC",
    "KernelLogisticRegression",
    "MultiTaskLSPC",
    "MultiTaskLSSVR",
    "MultiTaskLSSVC",
    "MultiTaskKernelLogisticRegression",
    "MultiLabelLSPC",
]
ESTIMATORS = [getattr(leastwise, name) for name in NAMES]
#: The order of numpydoc; a docstring need not have all of them.
SECTIONS = ["Parameters", "Attributes", "Returns", "See Also", "Notes", "References", "Examples"]
FOLDER = Path(docs.__file__).parent


def sections(doc):
    """Lines of every section of a docstring, by its title, in order."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.cleandoc(doc), flags=re.MULTILINE)
    return {title: text.splitlines() for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def entries(doc, section):
    """Names of a section with their types, in order; names that come twice are an error."""
    lines = [line for line in sections(doc)[section] if line and not line.startswith(" ")]
    heads = [tuple(line.split(" : ", 1)) for line in lines]
    assert all(len(head) == 2 for head in heads), lines
    assert len(heads) == len(dict(heads)), lines
    return dict(heads)


def default_text(value):
    return f'default="{value}"' if isinstance(value, str) else f"default={value!r}"


def public_methods(cls):
    return [name for name in dir(cls) if not name.startswith("_") and inspect.isfunction(getattr(cls, name))]


# ------------------------------------------------------------------- what is there


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_parameter_is_documented_in_order_with_its_default(cls):
    parameters = inspect.signature(cls).parameters
    found = entries(cls.__doc__, "Parameters")
    assert list(found) == list(parameters)
    for name, kind in found.items():
        assert kind.endswith(", " + default_text(parameters[name].default)), name


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_argument_of_fit_is_documented_in_order_with_its_default(cls):
    parameters = dict(inspect.signature(cls.fit).parameters)
    del parameters["self"]
    found = entries(cls.fit.__doc__, "Parameters")
    assert list(found) == list(parameters)
    for name, kind in found.items():
        assert ("default=" in kind) == (parameters[name].default is not inspect.Parameter.empty), name


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_entry_has_a_description(cls):
    for doc in (cls.__doc__, cls.fit.__doc__):
        for title in ("Parameters", "Attributes"):
            lines = sections(doc).get(title, [])
            for line, following in pairwise([*lines, ""]):
                assert line.startswith(" ") or not line or following.startswith("    "), line


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_sections_are_in_the_order_of_numpydoc(cls):
    titles = list(sections(cls.__doc__))
    assert titles == [title for title in SECTIONS if title in titles]
    assert {"Parameters", "Attributes", "Examples"} <= set(titles)
    for name in public_methods(cls):
        found = list(sections(getattr(cls, name).__doc__ or ""))
        if getattr(cls, name).__module__.startswith("leastwise"):
            assert found == [title for title in SECTIONS if title in found], name


PRECOMPUTED, CENTERS = {"kernel": "precomputed"}, {"n_centers": 10}
KRYLOV, PRUNE = {"solver": "krylov"}, {"prune": 0.5}
#: Parameters that set, together, every attribute of an estimator.
OPTIONS = {
    "LSPC": [{}, PRECOMPUTED, KRYLOV, {"solver": "sgd", **CENTERS}],
    "LSSVR": [{}, PRECOMPUTED, KRYLOV, PRUNE],
    "LSSVC": [{}, PRECOMPUTED, KRYLOV, PRUNE],
    "KernelLogisticRegression": [{}, PRECOMPUTED],
    "MultiTaskLSPC": [{}, PRECOMPUTED, CENTERS],
    "MultiTaskLSSVR": [{"bias": "task"}, PRECOMPUTED, CENTERS, KRYLOV, PRUNE],
    "MultiTaskLSSVC": [{"bias": "task"}, PRECOMPUTED, CENTERS, KRYLOV, PRUNE],
    "MultiTaskKernelLogisticRegression": [{}, PRECOMPUTED],
    "MultiLabelLSPC": [{}, PRECOMPUTED, {"solver": "cg"}],
}


def fits(cls, rng):
    """Models of every kind of fit."""
    name = cls.__name__
    X = rng.normal(size=(40, 3))
    noisy = X[:, 0] + 0.1 * rng.normal(size=40)
    y = noisy if name.endswith("SVR") else (noisy > 0).astype(int)
    y = np.column_stack([noisy > 0, X[:, 1] > 0]).astype(int) if name == "MultiLabelLSPC" else y
    fixed = {"sigma": 1.0, "alpha": 0.1} | ({"sharing": 0.5} if name.startswith("Multi") else {})
    tasks = {"tasks": np.arange(40) % 4} if name.startswith("MultiTask") else {}
    for option in OPTIONS[name]:
        yield cls(**fixed, **option).fit(X @ X.T + np.eye(40) if option is PRECOMPUTED else X, y, **tasks)
    if hasattr(cls, "partial_fit"):
        yield cls(**fixed, n_centers=10).partial_fit(X, y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_fitted_attributes_are_those_that_are_documented(cls, rng):
    found = set()
    for model in fits(cls, rng):
        found |= {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    properties = {n for n in dir(cls) if n.endswith("_") and isinstance(inspect.getattr_static(cls, n), property)}
    named = set(entries(cls.__doc__, "Attributes"))
    assert found <= named
    assert named - found - properties == {"feature_names_in_"}


# -------------------------------------------------------------------- shared texts


def placeholders():
    texts = [path.read_text() for path in FOLDER.glob("*.py") if path.name != "docs.py"]
    return re.findall(r"^ +%\(([\w.]+)\)s$", "\n".join(texts), re.MULTILINE)


def test_every_entry_of_the_tables_is_used():
    with_tasks = re.findall(r"%\(([\w.]+)\)s", " ".join(docs.WITH_TASKS.values()))
    assert {*placeholders(), *with_tasks} == set(docs.ENTRIES)


def test_keys_of_the_tables_differ():
    tables = [docs.PARAMETERS, docs.ATTRIBUTES, docs.ARGUMENTS, docs.NOTES]
    assert sum(map(len, tables)) == len(docs.ENTRIES)
    with pytest.raises(ValueError, match="'a' has two entries"):
        docs._table("a : int\n    One.\n\na : int\n    Two.")


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_no_placeholder_is_left(cls):
    assert "%(" not in cls.__doc__
    for name in public_methods(cls):
        assert "%(" not in (getattr(cls, name).__doc__ or ""), name


def test_entries_take_the_indentation_the_default_and_further_lines():
    @documented
    class Toy:
        """A toy.

        Parameters
        ----------
        %(tol.krylov)s
            And more.
        """

        def __init__(self, tol=math.nan):
            self.tol = tol

        def fit(self, X, groups=None):
            """Fit.

            Parameters
            ----------
            %(X)s
            %(groups)s
            """

    assert list(entries(Toy.__doc__, "Parameters").items()) == [("tol", "float, default=nan")]
    assert sections(Toy.__doc__)["Parameters"][-1] == "    And more."
    assert [kind.rpartition(", ")[2] for kind in entries(Toy.fit.__doc__, "Parameters").values()] == [
        "n_features)",
        "default=None",
    ]


def test_unknown_and_misplaced_placeholders_are_errors():
    with pytest.raises(ValueError, match=r"LSPC has an unknown placeholder %\(sigmma\)s"):
        filled("    %(sigmma)s\n", leastwise.LSPC)
    with pytest.raises(ValueError, match="LSPC, a placeholder is not alone in its line"):
        filled("    See %(sigma)s\n", leastwise.LSPC)


# -------------------------------------------------------------------------- methods


#: Functions of other modules that class bodies take.
TAKEN = {"plan", "influence", "fit_stream", "partial_fit", "unfit", "forget", "without_rows"}


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_methods_have_the_name_of_their_class(cls):
    for name in TAKEN & set(vars(cls)):
        method = getattr(cls, name)
        assert (method.__name__, method.__qualname__) == (name, f"{cls.__name__}.{name}")
        assert method.__module__ == cls.__module__
        assert name == "partial_fit" or pickle.loads(pickle.dumps(method)) is method  # available_if makes new ones
        assert next(iter(inspect.signature(method).parameters)) == "self"
        if name != "without_rows":
            assert list(entries(method.__doc__, "Parameters")) == list(inspect.signature(method).parameters)[1:]


def test_methods_of_two_classes_are_not_the_same_object():
    assert leastwise.LSPC.plan is not leastwise.LSSVC.plan
    with pytest.raises(TypeError, match=r"MultiTaskLSPC\.plan\(\) missing 1 required positional argument: 'X'"):
        leastwise.MultiTaskLSPC().plan()


# -------------------------------------------------------------------------- running


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_examples_run(cls):
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    tests = doctest.DocTestFinder(recurse=False).find(cls, cls.__name__)
    for test in tests:
        runner.run(test)
    assert runner.tries > 2
    assert not runner.failures


def test_without_docstrings_the_package_works():
    code = "import leastwise as lw; print(lw.LSPC.__doc__, lw.MultiTaskLSPC.plan.__doc__, lw.LSPC.plan.__qualname__)"
    out = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "None None LSPC.plan\n"

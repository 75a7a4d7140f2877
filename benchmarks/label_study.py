"""Many labels: every Mulan or MEKA set of a folder, with the five figures of a published comparison.

J. Bogatinovski et al., Comprehensive comparative study of multi-label classification methods, 2022, compare 26
methods. Sets are found in the folder and its subfolders:

NAME.xml       names the labels of NAME-train.arff and NAME-test.arff, the official split, or of NAME.arff
NAME.arff      MEKA's form, with the number of labels in @relation (-C); NAME-train.arff and NAME-test.arff, too
enron.npz      the archive of this project, with the official split

One file is divided as its @relation says: -split-number N or -split-percentage P, the first rows for training.
Without that, two thirds at random are for training. Files may be compressed (.gz, .bz2, .xz). Sets that cannot be
read are named, and left out.

MultiLabelLSPC()               one fit, with the decisions of several rules for its thresholds: 0.5, and those that
                               threshold="balanced" (one for each label, for F1 and the Hamming loss together),
                               "f1_micro" (one for all labels) and "f1_macro" (one for each label) choose on held-out
                               training rows
BR, chain                      binary relevance and classifier chains of logistic regression (C by 3 folds) and of
                               forests (100 trees)
CatBoost MultiLogloss          100 rounds with a learning rate of 0.1, if catboost is installed
ML-kNN                         10 neighbours
label shares                   the share of each label, without a model

All others decide at 0.5; ranking loss, AUC and log-loss do not depend on thresholds. Missing values are filled with
medians, and columns standardised for logistic regression and ML-kNN; our models and CatBoost get the rows as they
are. Labels with fewer than 3 rows of a class get a constant probability in scikit-learn's methods. F1 of a label
without positive rows and predictions is 0. Seconds are processor seconds of fit and prediction.

Every record is written when it is measured. --resume keeps those in the file, so that a long run can be continued;
--add measures again what is chosen, and keeps the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import f1_score, hamming_loss, label_ranking_loss, roc_auc_score
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._common import parse, parser, print_markdown
from benchmarks._pieces import gathered
from benchmarks.label_peers import OrShare, searched_logistic, second_columns
from leastwise import MultiLabelLSPC
from leastwise.baselines import MLkNN
from leastwise.calibration.label_thresholds import choose_thresholds
from leastwise.datasets import load_arff
from leastwise.datasets.files import opened
from leastwise.metrics import label_log_loss
from papers._common.data import VARIABLE, DataAbsent, load_set
from papers.ml_lspc.draws import LabelSplit, divided

Array = np.ndarray
#: Best values on Enron in the study, each of another method: lower is better for the two losses.
PUBLISHED = {
    "enron": {"f1_micro": 0.610, "f1_macro": 0.229, "hamming_loss": 0.049, "ranking_loss": 0.088, "auc_micro": 0.917}
}
OURS = "MultiLabelLSPC()"
#: Rules by which thresholds of our model are chosen; decisions at 0.5 are compared, too.
RULES = ("balanced", "f1_micro", "f1_macro")
FIGURES = ("log_loss", "f1_micro", "f1_macro", "hamming_loss", "ranking_loss", "auc_micro")
LOWER = ("log_loss", "hamming_loss", "ranking_loss")
PACKED = ("", ".gz", ".bz2", ".xz")
#: The split that MEKA's files may have in the name of the relation: a number of training rows, or their percentage.
SPLIT = re.compile(r"-split-(number|percentage)\s+([\d.]+)")

# ------------------------------------------------------------------------ data


def find_sets(folder: Path) -> dict[str, Callable[[], LabelSplit]]:
    """The sets of a folder, by name: functions that read them."""
    found: dict[str, Callable[[], LabelSplit]] = {}
    for file in sorted(folder.rglob("*")):
        name, ending = _name_of(file)
        if file.name == "enron.npz":
            found["enron"] = partial(_archive, str(folder))
        elif ending == ".xml" and (parts := _parts(file.parent, name)):
            found[name] = partial(_read, name, parts, file)
    for file in sorted(folder.rglob("*.arff*")):
        name = _name_of(file)[0].removesuffix("-train").removesuffix("-test")
        if name not in found and (parts := _parts(file.parent, name)) and "-C " in _relation(parts[0]):
            found[name] = partial(_read, name, parts, None)
    return found


def _name_of(file: Path) -> tuple[str, str]:
    """Name and ending without that of a compressed file."""
    plain = file.with_suffix("") if file.suffix in PACKED[1:] else file
    return plain.stem, plain.suffix


def _parts(folder: Path, name: str) -> list[Path]:
    """Training and test file, or one file with all rows; empty if there is neither."""
    train, test, whole = ([folder / f"{name}{part}.arff{end}" for end in PACKED] for part in ("-train", "-test", ""))
    train, test, whole = ([file for file in files if file.is_file()][:1] for files in (train, test, whole))
    return train + test if train and test else whole


def _relation(file: Path) -> str:
    with opened(file) as stream:
        lines = (line if isinstance(line, str) else line.decode(errors="replace") for line in stream)
        return next((line for line in lines if line.lower().lstrip().startswith("@relation")), "")


def _read(name: str, parts: Sequence[Path], labels: Path | None) -> LabelSplit:
    read = [load_arff(file, labels) for file in parts]
    if len({(data.feature_names, data.label_names) for data in read}) > 1:
        raise ValueError(f"{parts[0].name} and {parts[1].name} do not have the same attributes.")
    X = np.vstack([data.X.toarray() if sparse.issparse(data.X) else data.X for data in read])
    Y = np.vstack([data.Y for data in read])
    cut = len(read[0].Y) if len(read) == 2 else _official_rows(read[0].relation, len(Y))
    order = np.arange(len(Y)) if cut else np.random.default_rng(2022).permutation(len(Y))
    cut = cut or round(2 * len(Y) / 3)
    return divided(name, X, Y, order[:cut], order[cut:])


def _official_rows(relation: str, n: int) -> int:
    """The number of training rows in the name of a relation; 0 if it has none."""
    if not (found := SPLIT.search(relation)):
        return 0
    cut = round(float(found[2]) * (n / 100 if found[1] == "percentage" else 1))
    if not 0 < cut < n:
        raise ValueError(f"@relation has {found[0]!r}, but the file has {n} rows.")
    return cut


def _archive(folder: str) -> LabelSplit:
    data = load_set("enron", folder)
    train = np.asarray(data.is_train, dtype=bool)
    X, Y = np.asarray(data.X, dtype=float), np.asarray(data.Y)
    return divided("enron", X, Y, np.flatnonzero(train), np.flatnonzero(~train))


# --------------------------------------------------------------------- methods

#: A method maps the split to the probabilities of the test rows and to decisions, by the name of their rule; the
#: name of the first is "".
Method = Callable[[LabelSplit, argparse.Namespace], tuple[Array, dict[str, Array]]]


def ours(data: LabelSplit, args: argparse.Namespace) -> tuple[Array, dict[str, Array]]:
    """One model; its thresholds are chosen on held-out training rows, as ``threshold=NAME`` does."""
    model = MultiLabelLSPC(random_state=0).fit(data.X, data.Y)
    P, held = model.predict_proba(data.X_test), model.heldout_proba_
    known = ~np.isnan(held).any(axis=1)
    truth, weights = data.Y[known], np.ones_like(held[known])
    chosen = {name: choose_thresholds(name, held[known], truth, weights) for name in RULES}
    return P, {"": P > 0.5, **{f"threshold={name!r}": threshold < P for name, threshold in chosen.items()}}


def at_half(P: Array) -> tuple[Array, dict[str, Array]]:
    return P, {"": np.asarray(P) > 0.5}


def filled(data: LabelSplit, scale: bool) -> tuple[Array, Array]:
    """Training and test rows without missing values; columns without any value stay, as 0."""
    steps = [SimpleImputer(strategy="median", keep_empty_features=True)] + [StandardScaler()] * scale
    fill = make_pipeline(*steps)
    return fill.fit_transform(data.X), fill.transform(data.X_test)


def _base(name: str, data: LabelSplit, args: argparse.Namespace) -> Any:
    trees = RandomForestClassifier(10 if args.quick else 100, random_state=0)
    return OrShare(searched_logistic(0) if name == "logistic" else trees, data.Y.mean())


def binary_relevance(name: str, data: LabelSplit, args: argparse.Namespace) -> tuple[Array, dict[str, Array]]:
    X, new = filled(data, name == "logistic")
    return at_half(second_columns(MultiOutputClassifier(_base(name, data, args)).fit(X, data.Y), new))


def chain(name: str, data: LabelSplit, args: argparse.Namespace) -> tuple[Array, dict[str, Array]]:
    X, new = filled(data, name == "logistic")
    return at_half(ClassifierChain(_base(name, data, args)).fit(X, data.Y).predict_proba(new))


def catboost(data: LabelSplit, args: argparse.Namespace) -> tuple[Array, dict[str, Array]]:
    """Labels with one class only, which CatBoost refuses, get their share."""
    from catboost import CatBoostClassifier

    known = data.Y.min(axis=0) < data.Y.max(axis=0)
    P = np.tile(shares(data), (len(data.X_test), 1))
    if not known.any():
        return at_half(P)
    model = CatBoostClassifier(
        iterations=20 if args.quick else 100,
        learning_rate=0.1,
        loss_function="MultiLogloss" if known.sum() > 1 else "Logloss",
        thread_count=args.threads,
        random_seed=0,
        verbose=False,
        allow_writing_files=False,
    )
    found = model.fit(data.X, data.Y[:, known].squeeze()).predict_proba(data.X_test)
    P[:, known] = found if known.sum() > 1 else found[:, 1:]
    return at_half(P)


def neighbours(data: LabelSplit, args: argparse.Namespace) -> tuple[Array, dict[str, Array]]:
    X, new = filled(data, True)
    model = MLkNN().fit(X, data.Y)
    return model.predict_proba(new), {"": model.predict(new)}


def shares(data: LabelSplit) -> Array:
    return (data.Y.sum(axis=0) + data.Y.mean()) / (len(data.Y) + 1)


METHODS: dict[str, Method] = {
    OURS: ours,
    "BR of forests": partial(binary_relevance, "forests"),
    "chain of forests": partial(chain, "forests"),
    "BR of logistic regression": partial(binary_relevance, "logistic"),
    "chain of logistic regression": partial(chain, "logistic"),
    "CatBoost MultiLogloss": catboost,
    "ML-kNN": neighbours,
    "label shares": lambda data, args: at_half(np.tile(shares(data), (len(data.X_test), 1))),
}

# --------------------------------------------------------------------- figures


def figures(Y: Array, P: Array, decisions: Array) -> dict[str, float]:
    """The five figures of the study, as it computes them, and the log-loss of all entries."""
    return {
        "log_loss": float(label_log_loss(Y, P)),
        "f1_micro": float(f1_score(Y, decisions, average="micro", zero_division=0)),
        "f1_macro": float(f1_score(Y, decisions, average="macro", zero_division=0)),
        "hamming_loss": float(hamming_loss(Y, decisions)),
        "ranking_loss": float(label_ranking_loss(Y, P)),
        "auc_micro": float(roc_auc_score(Y.ravel(), P.ravel())) if Y.min() < Y.max() else float("nan"),
    }


def measured(name: str, data: LabelSplit, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One record for each rule of decision; none if the package of the method is not installed."""
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            P, decisions = METHODS[name](data, args)
    except ImportError as error:
        print(f"{data.name}, {name}: skipped, {error}", flush=True)
        return
    seconds = time.process_time() - began
    P = np.clip(np.asarray(P, dtype=float), 0, 1)
    sizes = {"rows": len(data.Y), "test_rows": len(data.Y_test), "labels": data.Y.shape[1]}
    for rule, decided in decisions.items():
        found = figures(data.Y_test, P, np.asarray(decided, dtype=int))
        yield {"data": data.name, **sizes, "method": name, "rule": rule, **found, "seconds": seconds}


def run(args: argparse.Namespace) -> Iterator[dict]:
    folder = args.data or os.environ.get(VARIABLE)
    if not folder or not Path(folder).is_dir():
        raise DataAbsent(
            f"There is no folder {str(folder)!r}: give --data a folder with ARFF files, or set {VARIABLE}."
        )
    found = find_sets(Path(folder))
    unknown = [name for name in args.sets or [] if name not in found]
    if unknown or not found:
        wanted = (
            f"set {unknown[0]!r}"
            if unknown
            else "multi-label set, an ARFF file with an XML file that names its labels"
        )
        raise DataAbsent(f"{folder} has no {wanted}. Found: {', '.join(found) or 'none'}.")
    kept = json.loads(args.output.read_text())["figures"] if args.resume and args.output.is_file() else []
    done = {(record["data"], record["method"]) for record in kept}
    for set_name in args.sets or found:
        try:
            data = found[set_name]()
        except ValueError as error:
            print(f"{set_name}: left out, {error}", flush=True)
            continue
        data = tiny(data) if args.quick else data
        for name in (name for name in args.methods if (data.name, name) not in done):
            for record in measured(name, data, args):
                shown = ", ".join(f"{key} {record[key]:.4f}" for key in FIGURES)
                print(f"{data.name}, {name} {record['rule']}: {shown}, {record['seconds']:.1f} s", flush=True)
                yield record


def tiny(data: LabelSplit) -> LabelSplit:
    """At most 200 rows for training and for testing, and eight labels."""
    return LabelSplit(data.name, data.X[:200], data.Y[:200, :8], data.X_test[:200], data.Y_test[:200, :8])


def report(found: Sequence[dict]) -> None:
    for name in dict.fromkeys(record["data"] for record in found):
        here = [record for record in found if record["data"] == name]
        lines = [
            [f["rule"] or f["method"], *(f"{f[key]:.3f}" for key in FIGURES), f"{f['seconds']:.1f}"] for f in here
        ]
        if name in PUBLISHED:
            best = PUBLISHED[name]
            lines.append(
                ["best of 26 methods, each figure by another", "", *(f"{best[k]:.3f}" for k in FIGURES[1:]), ""]
            )
        first = here[0]
        title = f"{name}: {first['rows']} training rows, {first['test_rows']} test rows, {first['labels']} labels"
        header = [
            "method",
            "log-loss",
            "micro F1",
            "macro F1",
            "Hamming loss",
            "ranking loss",
            "micro AUC",
            "seconds",
        ]
        print_markdown(title, header, lines)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.label_study", __doc__, threads=1)
    p.add_argument("--sets", nargs="+", metavar="NAME", help="only these sets of the folder")
    p.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD")
    p.add_argument("--add", action="store_true", help="keep the other records of the output file")
    p.add_argument("--resume", action="store_true", help="the same, and do not measure again what it has")
    args = parse(p, argv)
    args.add |= args.resume
    report(gathered(args, run(args)))


if __name__ == "__main__":
    main()

"""Model files in which one field of one object is broken: run by ``tests/persistence/test_schemas.py``.

    python tests/mutated_fields.py FOLDER HOW_MANY SEED

FOLDER holds model files, each with a pickle of the rows to predict beside it. Every field of every class in them is
broken in turn, in HOW_MANY ways over all fields (0: in all ways that are known): another type, off by one, negative,
huge, NaN, another dtype, another shape, another array, left out. A mutant is refused by a FileError that names a
class of the file; or it loads, and its model answers, or refuses to with an error that leastwise or scikit-learn
raises. (Where preprocessing of scikit-learn is broken, it may raise any error.) Anything else is listed as wrong:
errors of NumPy or Python in a loaded model, and memory. The process must survive. The last line of the output is a
JSON object with what was seen.
"""

import copy
import hashlib
import json
import pickle
import random
import resource
import sys
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from mutated_files import ask, read, write
from sklearn.exceptions import NotFittedError

import leastwise as lw
from leastwise.persistence import FileError

MEMORY = 2**30
SCALARS = [
    *(None, True, False, 0, 1, 2, -1, 3, 2**31, 2**62, -(2**63), 0.5, -0.5, 1e308, -1e308, 5e-324, "", "x", "auto"),
    *({"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, {"int": "9" * 38}, [], {"tuple": []}, {"dict": []}),
    *([1, 2], {"tuple": [1, 2]}, {"dict": [["a", 1]]}, {"object": 0}, {"array": 0}, {"function": "numpy.log1p"}),
    *({"scalar": ["<f8", 1.0]}, {"scalar": ["<i8", -1]}, {"objects": [[2], ["a", None]]}, {"type": "float"}),
    *({"dtype": ["numpy", "<f8"]}, {"slice": [0, 10**9, 1]}, {"date": "2024-01-01"}),
]


class Fields:
    """The fields of a file, and its mutants."""

    def __init__(self, path):
        self.header, self.blobs = read(path)

    def arrays(self):
        """All arrays, as NumPy has them."""
        return [
            np.frombuffer(blob, entry["dtype"]).reshape(entry["shape"], order=entry["order"])
            for blob, entry in zip(self.blobs, self.header["arrays"], strict=True)
        ]

    def mutants(self, node):
        """Pairs of a description and another node; new arrays are appended to the file when it is written."""
        for other in SCALARS:
            yield f"{str(other)[:40]}", other
        if type(node) in (int, float):
            yield "one more", node + 1
            yield "one less", node - 1
            yield "negative", -node
        if isinstance(node, dict):
            ((kind, content),) = node.items()
            yield from getattr(self, f"_{kind}", self._none)(content)
        elif isinstance(node, list):
            yield from self._items(node, lambda nodes: nodes)

    def _none(self, content):
        return ()

    def _items(self, nodes, make):
        if nodes:
            yield "one less", make(nodes[:-1])
            yield "one more", make([*nodes, nodes[-1]])
            yield "reversed", make(nodes[::-1])
        for k in range(min(len(nodes), 3)):
            for what, other in self.mutants(nodes[k]):
                yield f"[{k}] {what}", make([*nodes[:k], other, *nodes[k + 1 :]])

    def _tuple(self, nodes):
        return self._items(nodes, lambda nodes: {"tuple": nodes})

    def _dict(self, pairs):
        yield from self._items(pairs, lambda pairs: {"dict": pairs})
        for k, (key, value) in enumerate(pairs[:3]):
            for what, other in self.mutants(value):
                yield f"[{key!r}] {what}", {"dict": [*pairs[:k], [key, other], *pairs[k + 1 :]]}
            for other in (None, 0, "x", -1, {"tuple": []}):
                yield f"key {other}", {"dict": [*pairs[:k], [other, value], *pairs[k + 1 :]]}

    def _objects(self, content):
        shape, values = content
        yield "one less", {"objects": [[len(values) - 1], values[:-1]]}
        yield "one more", {"objects": [[len(values) + 1], [*values, *values[:1]]]}
        for k in range(min(len(values), 2)):
            for what, other in self.mutants(values[k]):
                yield f"[{k}] {what}", {"objects": [shape, [*values[:k], other, *values[k + 1 :]]]}

    def _object(self, number):
        for other in range(len(self.header["objects"])):
            if other != number:
                yield f"object {other}", {"object": other}

    def _array(self, number):
        for what, array in broken_arrays(self.arrays()[number]):
            yield what, {"array": array}
        for other in range(len(self.blobs)):
            if other != number:
                yield f"array {other}", {"array": other}

    def _sparse(self, content):
        kind, shape, *parts = content
        for axis in (0, 1):
            for step in (-1, 1, 10**6):
                changed = [n + step * (k == axis) for k, n in enumerate(shape)]
                yield f"shape {changed}", {"sparse": [kind, changed, *parts]}
        for k, part in enumerate(parts):
            for what, array in broken_arrays(self.arrays()[part]):
                yield f"part {k} {what}", {"sparse": [kind, shape, *parts[:k], array, *parts[k + 1 :]]}
        yield "csc", {"sparse": [kind.replace("csr", "csc"), shape, *parts]}
        yield "swapped", {"sparse": [kind, shape, *parts[::-1]]}

    def write(self, path, k, name, node):
        """The file with another value of a field; ``...`` leaves it out."""
        header, blobs = copy.deepcopy(self.header), list(self.blobs)
        state = header["objects"][k]["state"]
        if node is ...:
            del state[name]
        else:
            state[name] = _with_arrays(node, header, blobs)
        end = 0
        for entry in header["arrays"]:
            entry["offset"] = -(-end // 64) * 64
            end = entry["offset"] + entry["size"]
        write(path, header, blobs)


def broken_arrays(array):
    """Pairs of a description and another array."""
    flat = array.ravel()
    if not array.size:
        yield "one", np.zeros((1,) * array.ndim, array.dtype)
        return
    yield "one less", array[:-1]
    yield "one more", np.concatenate([array, array[-1:]])
    yield "reversed", array[::-1].copy()
    yield "another axis", array[None]
    yield "flat" if array.ndim > 1 else "column", flat if array.ndim > 1 else array[:, None]
    if array.ndim > 1:
        yield "narrower", np.ascontiguousarray(array[:, :-1])
        yield "transposed", np.ascontiguousarray(array.T)
    yield "empty", array[:0]
    if array.dtype.kind in "iuf":
        top = 2**62 if array.dtype.itemsize == 8 else np.iinfo(np.int8).max
        for value in (-1, 0, top, array.max() + 1, -(2**40), np.nan, np.inf, 1e300, 0.5):
            if array.dtype.kind == "f" or np.iinfo(array.dtype).min <= value <= np.iinfo(array.dtype).max:
                yield f"an entry {value}", _with_entry(array, value)
                yield f"all {value}", np.full_like(array, value)
        for dtype in ("<i8", "<i4", "<i1", "<u8", "<f8", "<f4", "<f2", "|b1", "<U3", "<M8[s]"):
            if np.dtype(dtype) != array.dtype:
                yield (
                    dtype,
                    np.nan_to_num(array).astype("<i8").astype(dtype) if dtype[1] in "UM" else _cast(array, dtype),
                )
    else:
        yield "numbers", np.arange(array.size, dtype=float).reshape(array.shape)


def _cast(array, dtype):
    with np.errstate(all="ignore"):
        return np.nan_to_num(array).astype(dtype)


def _with_entry(array, value):
    with np.errstate(all="ignore"):
        other = array.copy()
        other[(array.shape[0] // 2,) + (0,) * (array.ndim - 1)] = value
    return other


def _with_arrays(node, header, blobs):
    """The node with new arrays replaced by their numbers."""
    if isinstance(node, np.ndarray):
        order = "C" if node.flags.c_contiguous else "F"
        blob = node.tobytes(order)
        entry = {"dtype": node.dtype.str, "shape": list(node.shape), "order": order, "size": len(blob)}
        header["arrays"].append({**entry, "offset": 0, "sha256": hashlib.sha256(blob).hexdigest()})
        blobs.append(blob)
        return len(blobs) - 1
    if isinstance(node, list):
        return [_with_arrays(each, header, blobs) for each in node]
    if isinstance(node, dict):
        return {key: _with_arrays(value, header, blobs) for key, value in node.items()}
    return node


def jobs(files, count, rng):
    """File, object, class, field, description and node of all mutants; files with the same field take turns."""
    places = {}
    for file, fields in files.items():
        for k, obj in enumerate(fields.header["objects"]):
            for name, node in obj["state"].items():
                places.setdefault((obj["class"], name), []).append((file, k, node))
    each = -(-count // len(places)) if count else sys.maxsize
    for (cls, name), found in sorted(places.items()):
        some = rng.sample(found, min(len(found), 3))
        made = [(*place, what, node) for place in some for what, node in files[place[0]].mutants(place[2])]
        made.append((*some[0], "left out", ...))
        for file, k, _, what, node in rng.sample(made, min(len(made), each)):
            yield file, k, cls, name, what, node


def is_clear(error, cls):
    """True for an error that leastwise or scikit-learn raises itself; any for preprocessing and frames."""
    frames = traceback.extract_tb(error.__traceback__)
    last, ours = frames[-1], {"leastwise", "sklearn"}
    if cls.startswith("sklearn.") or {"pandas", "polars"} & set(Path(last.filename).parts):
        return True
    return (
        bool(ours & set(Path(last.filename).parts))
        and isinstance(error, ValueError | NotFittedError)
        and "raise" in last.line
    )


class Seen:
    """What became of the mutants."""

    def __init__(self):
        self.counts, self.fields, self.wrong = Counter(), set(), Counter()

    def refused(self, cls, name, what, error, classes):
        self.counts["refused"] += 1
        if "array" not in str(error) and not any(f"{each}." in str(error) for each in classes):
            self.wrong[f"{cls}.{name} {what}: refused by {str(error)[-150:]!r}"] += 1

    def loaded(self, cls, name, what, errors, answers):
        self.counts["loads"] += 1
        self.counts.update(answers)
        for method, error in errors:
            if not is_clear(error, cls):
                said = f"{type(error).__name__}: {str(error)[:80]}"
                self.wrong[f"{cls}.{name} {what}: {method} raises {said}"] += 1


def try_mutant(path, classes, rows, seen, cls, name, what):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = lw.load(path)
    except FileError as error:
        seen.refused(cls, name, what, error, classes)
        return
    errors = []
    answers = list(ask(model, rows, errors))
    seen.loaded(cls, name, what, errors, answers)


def main(folder, count, seed):
    files = {path: Fields(path) for path in sorted(Path(folder).glob("*.lw"))}
    rows = {path: pickle.loads(path.with_suffix(".rows").read_bytes()) for path in files}
    for path in files:
        list(ask(lw.load(path), rows[path]))  # imports what is needed
    path, seen = Path(folder) / "mutant", Seen()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    for file, k, cls, name, what, node in jobs(files, count, random.Random(seed)):
        print(f"{file.name} object {k} {cls}.{name} {what}", file=sys.stderr, flush=True)
        files[file].write(path, k, name, node)
        seen.fields.add((cls, name))
        classes = {obj["class"] for obj in files[file].header["objects"]}
        try_mutant(path, classes, rows[file], seen, cls, name, what)
    status = Path("/proc/self/status").read_text()
    most = int(status.partition("VmHWM:")[2].split()[0]) // 1024
    print(json.dumps({"seen": seen.counts, "wrong": seen.wrong, "fields": sorted(seen.fields), "megabytes": most}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

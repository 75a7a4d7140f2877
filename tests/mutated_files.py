"""Broken and hostile model files, in a process of their own: run by ``tests/persistence/test_files_fuzz.py``.

    python tests/mutated_files.py FOLDER HOW_MANY SEED

FOLDER holds model files with rows beside them. Every mutated file must give the clear error, or load; what has
loaded may then say what it likes, or raise what it likes, but must not crash, take much memory or run anything. The
last line of the output is a JSON object with what was seen.
"""

import contextlib
import copy
import hashlib
import json
import random
import resource
import struct
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import leastwise as lw
from leastwise.persistence import info
from leastwise.persistence.container import FileError
from leastwise.persistence.registry import ENTRIES

MEMORY = 2**30
#: What a program that runs what it was given would do.
FORBIDDEN = ("exec", "compile", "os.", "subprocess.", "socket.", "pickle.", "marshal.", "import")
NODES = [
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**62, -(2**63), 10**30, 0.5, -1e308, 5e-324, "", "x", "precomputed"),
    *([], {}, [[]], [0] * 50, {"a": 1}, {"array": 0}, {"array": 1}, {"array": 10**9}, {"array": -1}, {"array": "0"}),
    *({"object": 0}, {"object": 10**9}, {"object": -1}, {"float": "nan"}, {"float": "inf"}, {"float": "1e5"}),
    *({"int": "9" * 39}, {"int": "1" * 5000}, {"tuple": []}, {"tuple": [1, 2]}, {"dict": [[1, 2]]}, {"set": [[]]}),
    *({"function": "numpy.log1p"}, {"function": "os.system"}, {"type": "float"}, {"type": "os.system"}),
    *({"slice": [0, 10**18, 1]}, {"range": [0, 10**18, 1]}, {"bytes": "zz"}, {"constant": "pandas.NA"}),
    *({"scalar": ["<f8", 1.0]}, {"scalar": ["<U9999", "a"]}, {"scalar": ["|O", "a"]}, {"dict": [[[], 2]]}),
    *({"objects": [[2], ["a", None]]}, {"objects": [[10**9, 0], []]}, {"date": "x"}, {"timedelta": [10**12, 0, 0]}),
    *({"dtype": ["numpy", "<f8"]}, {"dtype": ["numpy", "<f8,<f8"]}, {"dtype": [1]}, {"dtype": ["pandas", "os"]}),
    *({"sparse": ["scipy.csr_matrix", [10**9, 3], 0, 1, 2]}, {"sparse": ["scipy.csc_array", [3, 3], 0, 0, 0]}),
    *({"random": ["RandomState", {"dict": []}]}, {"eval": "1"}, {"array": 0, "b": 1}, {"py/object": "os.system"}),
]
NAMES = [
    "__class__",
    "__dict__",
    "predict",
    "fit",
    "__reduce__",
    "classes_",
    "n_features_in_",
    "coef_",
    "a b",
    "é",
    "",
]
CLASSES = ["os.system", "builtins.eval", "subprocess.Popen", "", "LSPC ", *ENTRIES]


def read(path):
    """The header, and the bytes of all arrays."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[16:24])[0]
    header = json.loads(data[64 : 64 + length])
    base = -(-(64 + length) // 64) * 64
    return header, [bytearray(data[base + a["offset"] :][: a["size"]]) for a in header["arrays"]]


def write(path, header, blobs, text=None):
    """A file with right checksums, whatever it holds."""
    text = json.dumps(header).encode() if text is None else text
    body = bytearray()
    for blob in blobs:
        body += bytes(-len(body) % 64) + blob
    gap = bytes(-len(text) % 64) if blobs else b""
    start = b"\x93LEASTW\n" + struct.pack("<IIQQ", 1, 0, len(text), 64 + len(text) + len(gap) + len(body))
    path.write_bytes(start + hashlib.sha256(start + text).digest() + text + gap + body)


def places(node, found):
    """All places in a header, as pairs of a container and a key."""
    for key in node if isinstance(node, dict) else range(len(node)):
        found.append((node, key))
        if isinstance(node[key], dict | list):
            places(node[key], found)
    return found


def edit(header, blobs, rng):
    """One change of the header, or of an array and its checksum."""
    kind = rng.choice(["node", "node", "node", "delete", "swap", "name", "class", "array", "bytes", "bytes", "nest"])
    inner = places(header["objects"], []) or [(header, "root")]
    node, key = rng.choice(inner if rng.random() < 0.8 else places(header, []))
    if kind == "node":
        node[key] = copy.deepcopy(rng.choice(NODES))
    elif kind == "delete":
        del node[key]
    elif kind == "swap":
        other, name = rng.choice(inner)
        node[key], other[name] = copy.deepcopy(other[name]), copy.deepcopy(node[key])
    elif kind == "name" and isinstance(node, dict):
        node[rng.choice(NAMES)] = node.pop(key)
    elif kind == "class":
        rng.choice(header["objects"])["class"] = rng.choice(CLASSES)
    elif kind == "array" and header["arrays"]:
        edit_entry(header["arrays"], rng)
    elif kind == "bytes" and blobs:
        edit_bytes(header["arrays"], blobs, rng)
    elif kind == "nest":
        for _ in range(rng.choice([3, 70, 180])):
            node[key] = [node[key]]


def edit_entry(entries, rng):
    entry = rng.choice(entries)
    count = int(np.prod(entry["shape"]))
    entry.update(
        rng.choice(
            [
                {"shape": [1, *entry["shape"]]},
                {"shape": entry["shape"][::-1]},
                {"shape": [count]},
                {"shape": [count, 1]},
                {"shape": []},
                {"shape": [2**40, 2**40]},
                {"shape": [0, 2**40], "size": 0},
                {"shape": [0, 3], "size": 0},
                {"shape": [-1, -count]},
                {"shape": [True] * 3},
                {"shape": [1] * 40},
                {"order": "F"},
                {"order": "A"},
                {"offset": -64},
                {"offset": entry["offset"] + 64},
                {"offset": 0},
                {"size": 2**60},
                {"size": -8},
                {"dtype": "<i8"},
                {"dtype": "<u8"},
                {"dtype": "<f4"},
                {"dtype": "|O"},
                {"dtype": "<M8[ns]"},
                {"dtype": "<U2"},
                {"dtype": "<c16"},
                {"dtype": "<f8,<f8"},
                {"dtype": ["<f8"]},
                {"sha256": None},
                {"strides": [0, 0]},
            ]
        )
    )


def edit_bytes(entries, blobs, rng):
    number = rng.randrange(len(blobs))
    blob, dtype = blobs[number], entries[number]["dtype"]
    step = int(dtype[2]) if dtype[1] in "biuf" else 4
    hard = [b"\xff" * step, bytes(step), b"\xff" * (step - 1) + b"\x7f", rng.randbytes(step)]
    for _ in range(rng.choice([1, 3, 50])):
        at = rng.randrange(len(blob) // step) * step
        blob[at : at + step] = rng.choice(hard)
    entries[number]["sha256"] = hashlib.sha256(blob).hexdigest()


def damage(path, data, rng):
    """Changes that leave the checksums as they are."""
    data, kind = bytearray(data), rng.randrange(4)
    at = rng.randrange(len(data)) if rng.random() < 0.6 else rng.randrange(min(80, len(data)))
    if kind <= 1:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 2:
        del data[at:]
    else:
        data[at:at] = rng.randbytes(rng.randrange(1, 200))
    path.write_bytes(data)


def text_edit(path, header, blobs, rng):
    """Headers that are no JSON, or such that parsers disagree about."""
    text = json.dumps(header)
    at = rng.randrange(len(text))
    hard = ["NaN", "Infinity", "1e999", "9" * 5000, "[" * 100000, "{" * 9, '{"root":0,"root":0}', "\x00", '"\\ud800"']
    piece = rng.choice([*hard, text[at : at + 50], ""])
    write(path, header, blobs, (text[:at] + piece + text[at + rng.randrange(9) :]).encode("utf-8", "surrogatepass"))


def ask(model, rows, errors=None):
    """What models are asked; they may raise what they like, which is added to ``errors``."""
    methods = ("predict", "predict_proba", "decision_function", "predict_set", "predict_interval", "influence")
    for method in (*methods, "novelty_pvalue", "predict_table"):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                if hasattr(model, method):
                    getattr(model, method)(rows["X"], **({"tasks": rows["tasks"]} if "tasks" in rows else {}))
            yield "answers"
        except MemoryError:
            yield "memory"
        except Exception as error:
            if errors is not None:
                errors.append((method, error))
            yield "refuses to answer"
    yield from go_on(model, rows)


def go_on(model, rows):
    """Rows are added to models that keep sums."""
    if "moments_" not in getattr(model, "__dict__", {}) or "predict" not in rows:
        return
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            model.partial_fit(rows["X"], rows["predict"])
            model.unfit(rows["X"], rows["predict"])
        yield "goes on"
    except MemoryError:
        yield "memory"
    except Exception:
        yield "does not go on"


def main(folder, count, seed):
    files = sorted(Path(folder).glob("*.lw"))
    rows = {file: dict(np.load(file.with_suffix(".npz"), allow_pickle=False)) for file in files}
    known = {file: (file.read_bytes(), *read(file)) for file in files}
    for entry in ENTRIES.values():  # all that may be imported is, and errors that show a model need no more
        repr(entry.cls)
    repr(lw.LSPC())
    for file in files:
        list(ask(lw.load(file), rows[file]))
    path, seen, events, modules = Path(folder) / "mutated", Counter(), Counter(), set(sys.modules)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    watching = False

    def watch(event, _):
        if watching and event.startswith(FORBIDDEN):
            events[event] += 1

    sys.addaudithook(watch)
    for number in range(count):
        rng = random.Random(seed + number)
        file = rng.choice(files)
        data, header, blobs = known[file]
        kind = rng.choice(["damage", "edit", "edit", "edit", "text"])
        header, blobs = copy.deepcopy(header), [bytearray(b) for b in blobs]
        if kind == "damage":
            damage(path, data, rng)
        elif kind == "text":
            text_edit(path, header, blobs, rng)
        else:
            for _ in range(rng.choice([1, 1, 2, 5])):
                with contextlib.suppress(Exception):  # the second change may not find what the first one took
                    edit(header, blobs, rng)
            write(path, header, blobs)
        print(f"{seed + number} {file.name} {kind}", file=sys.stderr, flush=True)
        whole = path.read_bytes() == data
        watching = True
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = lw.load(path, mmap=rng.random() < 0.5)
                info(path)
            seen[f"{kind}: loads"] += not whole
            for said in ask(model, rows[file]):
                seen[f"{kind}: {said}"] += 1
        except FileError:
            seen[f"{kind}: error"] += 1
        watching = False
    # not ru_maxrss, which begins with that of the process that started this one
    status = Path("/proc/self/status").read_text()
    most = int(status.partition("VmHWM:")[2].split()[0]) // 1024
    new = sorted(set(sys.modules) - modules)
    print(json.dumps({"seen": seen, "events": events, "modules": new, "megabytes": most}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

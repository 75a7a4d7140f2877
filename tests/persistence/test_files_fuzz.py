"""Broken and hostile files give the clear error, or load; nothing crashes, nothing runs, memory stays bounded."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from mutated_files import read, write
from saved_models import FIXED, TASK, Y1, X
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import leastwise as lw
from leastwise.persistence import FileError, container, info

HERE = Path(__file__).parents[1]
MODELS = (
    *("lspc", "tasks-words", "tasks-arrow", "labels-isotonic", "labels-unknown", "lspc-sparse", "scale-quantile"),
    *("lssvr", "recalibrated-isotonic", "abstaining", "pipeline-3-QuantileTransformer", "pipeline-8-SimpleImputer"),
    *("stream-lspc", "stream-lssvr", "stream-labels"),
)
COUNT = int(os.environ.get("LEASTWISE_FUZZ", "3000"))


def pipelines():
    """Pre-processing whose attributes become indices."""
    rare = {"min_frequency": 20}
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    steps = {
        "rare": OneHotEncoder(**rare, handle_unknown="infrequent_if_exist"),
        "drop": OneHotEncoder(drop="first"),
        "ordinal": OrdinalEncoder(**rare, handle_unknown="use_encoded_value", unknown_value=-1),
    }
    for name, step in steps.items():
        yield name, make_pipeline(make_column_transformer((numbers, [0, 1]), (step, [3])), lw.LSPC(**FIXED))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Model files with rows beside them."""
    made = tmp_path_factory.mktemp("models")
    for name in MODELS:
        for end in ("lw", "npz"):
            shutil.copy(HERE / "fixtures" / "format-1" / f"{name}.{end}", made)
    rows = np.column_stack([X, TASK])
    for name, model in pipelines():
        lw.save(model.fit(rows, Y1), made / f"{name}.lw")
        np.savez(made / f"{name}.npz", X=rows[:6])
    state = np.random.RandomState(3)
    lw.save(lw.LSPC(sigma=1.0, alpha=0.1, random_state=state).fit(X, Y1), made / "state.lw")
    np.savez(made / "state.npz", X=X[:6])
    return made


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is read as Linux has it")
def test_mutated_files(folder):
    """LEASTWISE_FUZZ=100000 tries more of them."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(HERE)]), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / "mutated_files.py"), str(folder), str(COUNT), "0"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    seen = found["seen"]
    assert not [key for key in seen if key.endswith("memory")], seen
    assert not seen.get("damage: loads"), seen
    assert min(seen["damage: error"], seen["edit: error"], seen["text: error"]) > COUNT / 20
    assert seen["edit: loads"] > COUNT / 50
    assert not found["events"]
    assert not found["modules"]
    assert found["megabytes"] < 600


@pytest.fixture
def changed(folder, tmp_path):
    """Loads a file with another header."""

    def load(name, change, look=lw.load):
        header, blobs = read(folder / f"{name}.lw")
        change(header)
        write(tmp_path / "changed.lw", header, blobs)
        return look(tmp_path / "changed.lw")

    return load


def state_of(header, name):
    return next(o for o in header["objects"] if o["class"] == name)["state"]


def test_every_bit_of_a_small_file_counts(tmp_path):
    path = tmp_path / "model.lw"
    lw.save(lw.LSPC(sigma=1.0, alpha=[0.1, 1.0], centers=np.arange(3.0)[:, None]), path)
    data = path.read_bytes()
    for at in range(len(data)):
        for bit in range(8) if at < 64 else [at % 8]:
            broken = bytearray(data)
            broken[at] ^= 1 << bit
            path.write_bytes(broken)
            with pytest.raises(FileError):
                lw.load(path, mmap=False)
    for end in range(len(data)):
        path.write_bytes(data[:end])
        with pytest.raises(FileError):
            lw.load(path)


@pytest.mark.parametrize(
    "name", ["os.system", "builtins.eval", "sklearn.externals", "leastwise.LSPC", "kernel.Given", ""]
)
def test_classes_that_are_not_listed(changed, name):
    with pytest.raises(FileError, match="which is not registered"):
        changed("lspc", lambda header: header["objects"][0].update({"class": name}))


@pytest.mark.parametrize("name", ["__class__", "__reduce__", "predict", "fit", "set_params", "a b", ""])
def test_attributes_that_no_object_may_have(changed, name):
    with pytest.raises(FileError, match="is not declared"):
        changed("lspc", lambda header: state_of(header, "LSPC").update({name: 1}))


def test_things_that_would_crash_compiled_code(changed):
    def n_columns(header):
        state_of(header, "sklearn.OneHotEncoder")["_n_features_outs"] = [0]

    def dropped(header):
        state_of(header, "sklearn.OneHotEncoder")["_drop_idx_after_grouping"] = {"objects": [[1], [5]]}

    def jobs(header):
        state_of(header, "sklearn.ColumnTransformer")["n_jobs"] = 2

    def columns(header):
        state_of(header, "LSPC")["centers_"]["sparse"][1] = [48, 2]

    def endless(header):
        state_of(header, "LSSVR")["unit_"] = {"range": [0, 10**18, 1]}

    def cache(header):
        state_of(header, "sklearn.Pipeline")["memory"] = "/somewhere"

    def position(header):
        pairs = state_of(header, "LSPC")["random_state"]["random"][1]["dict"]
        dict(map(tuple, pairs))["state"]["dict"][1][1] = 10**6

    cases = [("rare", jobs), ("lspc-sparse", columns), ("lssvr", endless)]
    for name, change in [*cases, ("rare", cache), ("state", position)]:
        with pytest.raises(FileError):
            changed(name, change)
    for name, change in (("rare", n_columns), ("drop", dropped)):
        with pytest.raises(FileError):
            changed(name, lambda header, change=change: only_fitted(header, change))


def only_fitted(header, change):
    """Encoders come twice: as they were given, and fitted."""
    other = [
        o for o in header["objects"] if o["class"] == "sklearn.OneHotEncoder" and "categories_" not in o["state"]
    ]
    for entry in other:
        entry["class"] += " "
    change(header)
    for entry in other:
        entry["class"] = entry["class"].rstrip()


@pytest.mark.parametrize("unit", ["[],", '{"tuple":[]},', "1.5,", '"a",'])
def test_a_header_that_swells(tmp_path, unit, monkeypatch):
    """The smallest things, as many as a header can have: memory is a small multiple of its length."""
    length = container.MAX_BYTES // 32
    monkeypatch.setattr(container, "MAX_GROUPS", container.MAX_GROUPS // 32)
    start = '{"root":0,"arrays":[],"objects":[{"class":"LSPC","version":1,"state":{"a_":['
    header = start + unit * (length // len(unit))
    write(tmp_path / "large.lw", None, [], (header[:-1] + "]}}]}").encode())
    tracemalloc.start()
    try:
        with contextlib.suppress(FileError):
            lw.load(tmp_path / "large.lw")
        assert tracemalloc.get_traced_memory()[1] < 25 * length
    finally:
        tracemalloc.stop()


def test_info_of_broken_files(changed, tmp_path):
    for change in (
        lambda header: header.update(root=10**6),
        lambda header: header.update(objects=3),
        lambda header: header.update(arrays=None),
        lambda header: header["objects"].append({"class": 3}),
    ):
        with pytest.raises(FileError):
            changed("lspc", change, info)
    for data in (b"", b"PK\x03\x04", b"\x80\x04\x95", bytes(200), b"\x93LEASTW\n"):
        (tmp_path / "other").write_bytes(data)
        with pytest.raises(FileError, match="not a leastwise model"):
            info(tmp_path / "other")

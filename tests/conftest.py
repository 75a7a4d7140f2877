"""Settings for the whole suite."""

import os

# scikit-learn's array-API checks are skipped without this; it has to be set before scipy is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "leastwise",
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),  # the same examples in every run, so that a failure is due to the change
)
settings.load_profile("leastwise")

#: The papers' data sets, where they are: tests that need them are skipped elsewhere.
DATA = Path(os.environ.get("LEASTWISE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


#: A Gaussian kernel of the columns as they are, for tests of formulas: by default inputs are chosen on held-out rows.
PLAIN = {"kernel": "rbf", "scale": None, "metric": None}
#: The same with a linear part, for regression.
PLAIN_SUM = {**PLAIN, "kernel": "rbf+linear"}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def blobs(n=60, c=3, d=2, seed=0, intercept_ratio=1.0):
    """Overlapping classes: something to learn, and something to be unsure of."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % c)
    middle = 2 * rng.normal(size=(c, d))
    return middle[y] + intercept_ratio * rng.normal(size=(n, d)), y


@pytest.fixture
def data():
    return blobs()


@pytest.fixture(scope="session")
def cluster():
    """Two worker processes of Dask on this machine."""
    dask = pytest.importorskip("dask", reason="needs the extra dask")
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    with (
        dask.config.set({"distributed.admin.log-format": "%(message)s", "distributed.comm.timeouts.connect": "30s"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as found,
    ):
        yield found


@pytest.fixture
def client(cluster):
    """Work goes to the cluster."""
    from distributed import Client

    with Client(cluster) as found:
        yield found

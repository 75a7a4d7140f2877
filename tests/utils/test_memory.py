"""Sizes of memory, as text and as found."""

import pytest

from leastwise.utils.resources import available_memory, human, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("1000", 1000), ("4GB", 4 * 2**30), ("512 MiB", 512 * 2**20), ("1.5k", 1536), ("2TB", 2 * 2**40)],
)
def test_parse_size(text, size):
    assert parse_size(text) == size


def test_parse_size_refuses_nonsense():
    with pytest.raises(ValueError, match="'lots' is not a memory size"):
        parse_size("lots")


def test_available_memory(monkeypatch):
    monkeypatch.delenv("LEASTWISE_MEMORY", raising=False)
    assert 2**20 < available_memory() < 2**62
    monkeypatch.setenv("LEASTWISE_MEMORY", "3MB")
    assert available_memory() == 3 * 2**20
    assert human(3 * 2**20) == "3 MB"
    assert human(1010 * 2**20) == "0.986 GB"
    assert human(5e18) == "4.55e+06 TB"

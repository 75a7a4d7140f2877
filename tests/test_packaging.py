"""Versions, extras and Python versions say the same wherever they stand."""

import re
import tomllib
from pathlib import Path

import pytest

import leastwise

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").is_file(), reason="pyproject.toml is not beside the tests"
)


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_one_version(project):
    assert project["version"] == leastwise.__version__
    assert f"\nversion: {leastwise.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    versions = re.findall(r"^## \[(\d[\w.]*)\]", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    assert versions[0] == leastwise.__version__


def test_the_changelog_keeps_its_form():
    """Keep a Changelog: releases are dated, newest first, and have known sections, each once."""
    text = (ROOT / "CHANGELOG.md").read_text()
    releases = re.split(r"^## ", text, flags=re.M)[1:]
    dates = []
    for release in releases:
        title = release.splitlines()[0]
        found = re.fullmatch(r"\[Unreleased\]|\[\d+\.\d+\.\d+\] - (\d{4}-\d\d-\d\d)", title)
        assert found, title
        dates.append(found[1] or "9999")
        sections = re.findall(r"^### (.*)", release, flags=re.M)
        assert len(sections) == len(set(sections)), title
        assert set(sections) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}, title
    assert dates == sorted(dates, reverse=True)


def test_classifiers_begin_with_the_oldest_python(project):
    named = [name.rsplit(" ", 1)[1] for name in project["classifiers"] if re.search(r":: Python :: 3\.\d+$", name)]
    assert f">={named[0]}" == project["requires-python"]
    minors = [int(name.split(".")[1]) for name in named]
    assert minors == list(range(minors[0], minors[-1] + 1))


def test_every_extra_names_the_oldest_version_it_works_with(project):
    """``make test-oldest`` installs these versions, so that a missing bound would be tested with any version."""
    names = [
        *project["dependencies"],
        *(name for key, extra in project["optional-dependencies"].items() if key != "docs" for name in extra),
    ]
    assert [name for name in names if ">=" not in name and not name.startswith("leastwise[")] == []


def test_targets_in_the_pages_exist():
    """Every ``make target`` that a page names is in the Makefile."""
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.M))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"`make ([a-z-]+)", page.read_text())}
    assert named >= {"test", "dist", "coverage", "test-oldest"}
    assert named <= targets

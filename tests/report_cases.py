"""Models for the tests of reports, and a parser that checks the HTML."""

import re
from functools import cache
from html.parser import HTMLParser

import numpy as np

from leastwise import LSPC, LSSVR, MultiLabelLSPC, MultiTaskLSPC, MultiTaskLSSVR
from leastwise.datasets import make_related_tasks, make_rotated_labels
from leastwise.estimators.abstaining import Abstaining

VOID = {"meta", "input", "link", "br", "img", "hr"}


@cache
def classes_model(c=3, n=150):
    """Overlapping classes, and a threshold."""
    rng = np.random.default_rng(c)
    y = rng.permutation(np.arange(n) % c)
    X = np.column_stack([np.cos(y * 2 * np.pi / c), np.sin(y * 2 * np.pi / c)]) + 1.8 / c * rng.normal(size=(n, 2))
    return Abstaining(LSPC(random_state=0), max_error=0.2).fit(X, y), X, y


@cache
def tasks_model(T=12, n=15):
    data = make_related_tasks(T, n, random_state=0)
    model = Abstaining(MultiTaskLSPC(random_state=0), min_confidence=0.8)
    return model.fit(data.X, data.y, tasks=data.task), data


@cache
def labels_model():
    data = make_rotated_labels(n_labels=5, n_rows=90, n_features=4, random_state=0)
    X = data.X + 0.4 * np.random.default_rng(0).normal(size=data.X.shape)
    Y = data.Y.astype(float)
    Y[::7, 2] = np.nan
    return MultiLabelLSPC(random_state=0).fit(X, Y), X, Y


@cache
def values_model(tasks=True):
    data = make_related_tasks(6, 20, random_state=1)
    y = 3 * data.X[:, 0] + np.random.default_rng(0).normal(size=len(data.X)) + data.task
    if tasks:
        return MultiTaskLSSVR(random_state=0).fit(data.X, y, tasks=data.task), data.X, y, data.task
    return LSSVR(random_state=0).fit(data.X, np.column_stack([y, -y])), data.X, np.column_stack([y, -y]), None


class Page(HTMLParser):
    """Elements in order, with the names of their attributes; ids, headings, references, words."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.shape, self.ids, self.headings, self.references = [], [], [], [], []
        self.words, self.names, self.wrong, self.attributes = [], [], [], []
        self.feed(html)
        self.close()
        self.wrong += [f"{tag} is not closed" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        self._note(tag, dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self._note(tag, dict(attrs))

    def _note(self, tag, attrs):
        self.shape.append((tag, tuple(sorted(attrs))))
        self.attributes += [(tag, name, value) for name, value in attrs.items()]
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        for name in ("for", "aria-labelledby"):
            self.references += (attrs.get(name) or "").split()
        self.references += [attrs["href"][1:]] if attrs.get("href", "").startswith("#") else []

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"{tag} is closed where it is not open")

    def handle_data(self, data):
        if self.open and self.open[-1] == "bdi":
            self.names.append(data)
        if "script" not in self.open and "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def check(html):
    """Checks that hold for every report."""
    page = Page(html)
    assert not page.wrong
    assert len(set(page.ids)) == len(page.ids)
    assert set(page.references) <= set(page.ids)
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:], strict=False))
    assert not [a for a in page.attributes if a[1] == "style" or a[1].startswith("on")]
    assert not [a for a in page.attributes if a[1] in ("src", "href", "data") and not str(a[2]).startswith("#")]
    return page

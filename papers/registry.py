"""The papers, by the names that they are asked for by."""

from __future__ import annotations

from papers import lspc, lspc_mt, ml_lspc, mtls_svm
from papers._common.experiments import Paper

#: The papers, by the names that the command has for them.
PAPERS: dict[str, Paper] = {p.name: p for p in (lspc.PAPER, lspc_mt.PAPER, ml_lspc.PAPER, mtls_svm.PAPER)}

"""Sphinx configuration."""

import sys
from pathlib import Path

import leastwise

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # papers/ is not installed

project = "leastwise"
author = "The leastwise developers"
copyright = "2026, the leastwise developers"
release = version = leastwise.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx-mathjax-offline",  # formulas without a network
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
autosummary_generate = True
autodoc_typehints = "none"  # docstrings say what parameters are
numpydoc_show_class_members = False
templates_path = ["_templates"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"leastwise {version}"
exclude_patterns = ["_build", "_templates", "gallery/*.ipynb", "gallery/*.py", "gallery/*.md5", "gallery/*.zip"]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "ignore_pattern": r"demo|readme_picture",
    "download_all_examples": False,
    "remove_config_comments": True,
}

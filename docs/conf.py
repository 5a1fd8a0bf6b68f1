"""How the documentation is built: `make docs`. Warnings are errors."""

import os
import re
import sys
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("COLUMNS", "100")
sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

from sphinx_gallery.sorting import ExplicitOrder

from setwise import __version__

project = "setwise"
author = "The setwise developers"
copyright = "the setwise developers, BSD-3-Clause"  # noqa: A001 - Sphinx wants this name
version = release = __version__

extensions = [
    "myst_nb",  # Markdown, and notebooks
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx-mathjax-offline",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "command_reference",
]
exclude_patterns = ["_build", "_templates", "gallery", "**/GALLERY_HEADER.rst", "auto_examples/*.ipynb"]
templates_path = ["_templates"]
nitpicky = True
suppress_warnings = ["config.cache"]  # sphinx-gallery keeps a function in its settings

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

nb_execution_mode = "force"  # notebooks are kept without output
nb_execution_raise_on_error = True
nb_merge_streams = True

default_role = "literal"  # docstrings write `names` as Markdown does
rst_prolog = r"""
.. |S| replace:: \|S\|
.. |1 − z| replace:: \|1 − z\|
"""  # absolute values and sizes, which docstrings write as people do
autosummary_generate = True
autodoc_typehints = "none"  # parameters are described in words
autodoc_mock_imports = ["mlflow"]  # the pages need its docstrings alone
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_use_plots = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "within_subsection_order": ExplicitOrder(
        [
            "plot_reading_the_guarantee.py",
            "plot_strategies.py",
            "plot_weak_model.py",
            "plot_diagnose.py",
            "plot_verified_labels.py",
            "plot_annotators.py",
            "plot_ship.py",
            "plot_votes.py",
            "plot_each_class.py",
            "plot_aps_and_lac.py",
            "plot_torch_loop.py",
            "plot_pictures.py",
        ]
    ),
}

# What a button copies are the commands and the code alone: neither prompts nor what they print.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"setwise {release}"
html_static_path = ["_static"]
html_css_files = ["setwise.css"]
html_js_files = ["names.js"]
html_show_sourcelink = False
html_sidebars = {
    page: [] for page in ("index", "install", "five-minutes", "command-line", "data-files", "glossary")
}
html_theme_options = {
    "logo": {"text": "setwise"},
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "collapse_navigation": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "header_links_before_dropdown": 8,
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
}

# Links inside the documentation are held by the build itself and by `-b linkcheck`. Addresses outside are not
# asked: the build needs no network.
linkcheck_ignore = [r"https?://.*"]


def without_last_blank(_app, _page, text):
    """Leaves out the blank line with which doctests end in a block of a page."""
    text[0] = re.sub(r"\n\n```\n", "\n```\n", text[0])


def setup(app):
    app.connect("source-read", without_last_blank)

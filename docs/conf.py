"""Settings of the documentation: `sphinx-build docs docs/_build`."""

project = "srcgrad"
author = "the srcgrad authors"
project_copyright = "2026, the srcgrad authors"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "srcgrad"

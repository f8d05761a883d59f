# The pages: sphinx-build driver/docs OUT, with ogrjoin on PYTHONPATH.
project = "ogrjoin"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "alabaster"
autodoc_member_order = "bysource"
autodoc_typehints = "none"


def keep_lines(app, what, name, obj, options, lines):
    """Docstrings are plain text in columns."""
    lines[:] = ["::", ""] + ["   " + line for line in lines] + [""]


def setup(app):
    app.connect("autodoc-process-docstring", keep_lines)

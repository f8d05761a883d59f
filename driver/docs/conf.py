"""The pages: sphinx-build driver/docs OUT, with ogrjoin on PYTHONPATH."""

import json

from myst_parser.parsers.sphinx_ import MystParser

project = "ogrjoin"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "alabaster"
html_theme_options = {
    "page_width": "1160px",
    "sidebar_width": "230px",
    "fixed_sidebar": True,
    "show_powered_by": False,
}
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_show_copyright = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
myst_heading_anchors = 3


class NotebookParser(MystParser):
    """A notebook as a page: its text, and its code as it stands, without results.
    The tests run the code."""

    supported = ("notebook",)

    def parse(self, inputstring, document):
        page = []
        for cell in json.loads(inputstring)["cells"]:
            text = "".join(cell["source"])
            page.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        super().parse("\n\n".join(page), document)


def show_docstring_as_text(app, what, name, obj, options, lines):
    """Shows a docstring unchanged, because docstrings are plain text in columns."""
    lines[:] = [".. code-block:: text", ""] + ["   " + line for line in lines] + [""]


def setup(app):
    app.connect("autodoc-process-docstring", show_docstring_as_text)
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)

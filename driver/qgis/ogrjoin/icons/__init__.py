"""Where the icons are."""

import os


def icon_path(name):
    return os.path.join(os.path.dirname(__file__), name + ".svg")

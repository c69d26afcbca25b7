"""``featherload`` on PATH: becomes the executable inside the package."""

from __future__ import annotations

import os
import sys

from ._errors import Error
from ._helper import helper


def main() -> None:
    try:
        path = helper()
    except Error as error:
        sys.exit(f"featherload: {error}")
    os.execv(path, ["featherload", *sys.argv[1:]])

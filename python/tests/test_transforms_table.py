"""The docs' table of everything that translates is the code's."""

from __future__ import annotations

import os
from pathlib import Path

from featherload import _transforms_table

PAGE = Path(__file__).parents[2] / "docs" / "python" / "transforms-table.md"


def test_the_page_is_the_codes() -> None:
    made = _transforms_table.page()
    if "FEATHERLOAD_WRITE_DOCS" in os.environ:
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made, "write it with FEATHERLOAD_WRITE_DOCS=1"


def test_every_operation_of_the_page_is_one_of_recipes() -> None:
    import re
    import subprocess

    executable = os.environ.get("FEATHERLOAD_EXECUTABLE", "featherload")
    listed = subprocess.run([executable, "ops"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"\b[a-z][a-z0-9_]+\b", listed))
    from featherload._transforms import OTHERS, TRANSFORMS

    for one in [*TRANSFORMS.values(), *OTHERS.values()]:
        for name in re.findall(r"`([a-z][a-z0-9_]+)`", one.to):
            assert name in known, name

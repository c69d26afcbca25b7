"""What the pages show runs, block by block, on the demo set."""

from __future__ import annotations

import inspect
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from conftest import need, write_scene

import featherload
from featherload import _transforms

ROOT = Path(__file__).parent.parent.parent
FILES = [ROOT / "README.md", ROOT / "python" / "README.md"]
FILES += [
    page
    for folder in ("docs", "docs/python", "docs/quickstart")
    for page in sorted(ROOT.glob(f"{folder}/*.md"))
]
PAGES = [page.relative_to(ROOT).as_posix() for page in FILES if "\n```python\n" in page.read_text()]


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run(page: str, photos: Path, tmp_path: Path, monkeypatch: Any) -> None:
    for module in ("torch", "torchvision", "transformers", "timm"):
        need(module)
    for name in ("photos", "data"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train").symlink_to(photos)
    write_scene(tmp_path / "data" / "fox")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    # Recipes that a page shows, as files.
    for name, recipe in re.findall(r"^```yaml\n# (\S+\.yaml)\n(.*?)^```", text, re.M | re.S):
        (tmp_path / name).write_text(recipe)
    # Names that a trainer has and that a page does not explain.
    names: dict[str, Any] = {"writer": MagicMock(), "wandb": MagicMock(), "step": 0}
    for number, block in enumerate(blocks):
        # One epoch is enough.
        block = re.sub(r"range\(\d+\)", "range(1)", block)
        if 'device="cuda"' in block:
            import torch

            if not torch.cuda.is_available():
                print(f"SKIP: {page}, block {number}: no GPU here")
                continue
        if "nerfstudio" in block and find_spec("nerfstudio") is None:
            print(f"SKIP: {page}, block {number}: nerfstudio is not installed")
            continue
        if "s3://" in block:
            print(f"SKIP: {page}, block {number}: needs a bucket; test_stores.py has one")
            continue
        if "load_from_disk" in block:
            print(f"SKIP: {page}, block {number}: needs a data set; test_hugging_face.py has one")
            continue
        if ".parquet" in block:
            print(f"SKIP: {page}, block {number}: needs Parquet files; tests/data/parquet has some")
            continue
        if "featherload.ray" in block or "spark." in block:
            print(f"SKIP: {page}, block {number}: needs a cluster; test_ray.py has one")
            continue
        exec(compile(block, f"{page}, block {number}", "exec"), names)


def test_docstrings_are_of_keywords_that_exist() -> None:
    """Every keyword of ``Loader`` stands in its docstring, and no other does."""
    lines = re.findall(r"^ {4}(``\w.*)$", featherload.Loader.__doc__ or "", re.MULTILINE)
    named = {name for line in lines for name in re.findall(r"``(\w+)``", line)}
    assert named == set(inspect.signature(featherload.Loader).parameters)


def first_columns(text: str) -> set[str]:
    """Names in backticks of the first column of a page's tables."""
    cells = re.findall(r"^\| ([^|]*) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.parametrize(
    "call",
    [
        featherload.Loader,
        featherload.Rays,
        featherload.Views,
        featherload.Scene,
        featherload.cache.build,
    ],
)
def test_the_page_of_options_has_every_keyword(call: Any) -> None:
    page = first_columns((ROOT / "docs" / "options.md").read_text())
    keywords = inspect.signature(call).parameters.values()
    names = {keyword.name for keyword in keywords if keyword.kind is not keyword.VAR_KEYWORD}
    assert not names - page


def test_the_page_of_transforms_has_every_class_that_translates() -> None:
    """A table that is written by hand would fall behind: the one page is made of the code."""
    page = (ROOT / "docs" / "python" / "transforms-table.md").read_text()
    section = page.split("\n## torchvision\n")[1].split("\n## ")[0]
    assert first_columns(section) - {"class"} == set(_transforms.TRANSFORMS)

"""What the pages show runs, block by block, on the demo set."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from conftest import need, write_scene

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    page.relative_to(ROOT).as_posix()
    for page in [ROOT / "README.md", ROOT / "python" / "README.md", *sorted(ROOT.glob("docs/*.md"))]
    if "\n```python\n" in page.read_text()
]


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
        if ".parquet" in block:
            print(f"SKIP: {page}, block {number}: needs Parquet files; tests/data/parquet has some")
            continue
        if "featherload.ray" in block or "spark." in block:
            print(f"SKIP: {page}, block {number}: needs a cluster; test_ray.py has one")
            continue
        exec(compile(block, f"{page}, block {number}", "exec"), names)


def test_docstrings_are_of_keywords_that_exist() -> None:
    """Every keyword of ``Loader`` stands in its docstring, and no other does."""
    import inspect

    import featherload

    said = re.findall(r"^ {4}(``\w.*)$", featherload.Loader.__doc__ or "", re.MULTILINE)
    named = {name for line in said for name in re.findall(r"``(\w+)``", line)}
    assert named == set(inspect.signature(featherload.Loader).parameters)

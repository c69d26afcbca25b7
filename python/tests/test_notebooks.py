"""The quickstart notebooks: their files are clean, what they link to exists, and they run."""

from __future__ import annotations

import ast
import base64
import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import need

ROOT = Path(__file__).parent.parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "quickstart").glob("*.ipynb"))


def module_of(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A file that is in no package."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_no_outputs(path: Path) -> None:
    whole = json.loads(path.read_text())
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    assert whole["metadata"] == {"kernelspec": kernel, "language_info": {"name": "python"}}
    for number, cell in enumerate(whole["cells"]):
        assert cell["metadata"] == {} and cell["id"] == f"cell-{number}"
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    # The result is checked, and not only printed.
    last = [text(cell) for cell in whole["cells"] if cell["cell_type"] == "code"][-1]
    assert any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(last)))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_text_is_short_and_its_links_exist(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    pages = [text(cell) for cell in cells if cell["cell_type"] == "markdown"]
    assert pages[0].startswith("# ") and pages[-1].startswith("## Next")
    for page in pages:
        for link in re.findall(r"\]\(([^)]+)\)", page):
            file, _, anchor = link.partition("#")
            target = path.parent / file
            assert target.is_file(), link
            heads = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            found = [re.sub(r"[^\w -]", "", head).replace(" ", "-").lower() for head in heads]
            assert not anchor or anchor in found, link
        for line in re.split(r"\n\n|\n(?=[-#])", page):
            for sentence in re.split(r"(?<=[.!?])\s", line.replace("\n", " ")):
                assert len(sentence.split()) <= 25, sentence


def test_the_index_lists_the_notebooks() -> None:
    page = (ROOT / "docs" / "quickstart" / "index.md").read_text()
    listed = re.findall(r"\]\((\S+\.ipynb)\)", page)
    assert listed
    assert sorted(listed) == [path.name for path in NOTEBOOKS]


# Jupyter's loop of asyncio warns.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", [0, 1])
def test_a_notebook_of_the_gate_runs(
    place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("torch", "torchvision", "ipykernel"):
        need(module)
    # Other tests run beside it.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    need("nbclient")
    # It also names the notebooks of the gate.
    notebooks = module_of(ROOT / "scripts" / "notebooks.py", "run_notebooks", monkeypatch)
    name = notebooks.GATE[place]
    executed = notebooks.execute(name, tmp_path)
    outputs = [out for cell in executed.cells for out in cell.get("outputs", ())]
    data = [out["data"] for out in outputs if "data" in out]
    pictures = sum("image/png" in one or "data:image/png" in str(one) for one in data)
    assert pictures > 0
    assert any("all processes" in one.get("text/plain", "") for one in data)
    assert str(tmp_path) not in str(data)


def test_a_page_has_the_outputs_of_the_same_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = module_of(ROOT / "site" / "notebooks.py", "site_notebooks", monkeypatch)
    path = NOTEBOOKS[0]
    executed = tmp_path / path.name
    before = site.page_of(path, executed)
    assert "no outputs, because an executed copy was not there" in before.markdown
    assert not before.pictures and not before.faults

    whole = json.loads(path.read_text())
    code = [cell for cell in whole["cells"] if cell["cell_type"] == "code"]
    coded = base64.b64encode(b"picture").decode()
    html = f'<figure><img title="a.jpg" src="data:image/png;base64,{coded}">\n\n</figure>'
    code[0]["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": ["one\n"]},
        {"output_type": "stream", "name": "stdout", "text": ["two in data/a.jpg\n"]},
        {"output_type": "display_data", "data": {"text/html": html, "text/plain": "none"}},
        {"output_type": "display_data", "data": {"image/png": coded, "text/plain": "none"}},
    ]
    executed.write_text(json.dumps(whole))
    page = site.page_of(path, executed)
    assert "```{ .text .no-copy .output }\none\ntwo in data/a.jpg\n```" in page.markdown
    assert [*page.pictures.values()] == [b"picture", b"picture"] and not page.faults
    for picture in page.pictures:
        assert f'src="../{picture}"' in page.markdown
    assert "base64" not in page.markdown

    code[1]["outputs"] = [
        {"output_type": "stream", "name": "stderr", "text": ["in /home/me/some/file.py:3\n"]}
    ]
    executed.write_text(json.dumps(whole))
    assert site.page_of(path, executed).faults == ["an output has the path /home/me/some/file.py:3"]

    code[1]["source"] = ["other()"]
    executed.write_text(json.dumps(whole))
    other = site.page_of(path, executed)
    assert "because an executed copy has other code" in other.markdown and not other.pictures

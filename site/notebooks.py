"""Notebooks of docs/quickstart as Markdown, with the outputs of executed copies.

Text and code are those of docs. Outputs are those of the copy that scripts/notebooks wrote, if its
code is still the same. Pictures become files, so pages stay small.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = "quickstart"
# Beside the folder, since mkdocs.yml leaves out all of it except pages and notebooks.
PICTURES = "quickstart-pictures"
# A larger PNG is a photo, which is smaller as a JPEG.
MOST_PNG_BYTES = 300_000
DATA = re.compile(r'src="data:image/(png|jpeg);base64,([^"]+)"')
# Paths that only one machine has. Runs write to the folder of the notebook.
MACHINE = re.compile(r"(?<![\w./])/(?:home|mnt|opt|root|srv|tmp|usr|var|work|Users)/[^\s'\"<)]*")
COLOURS = re.compile("\x1b\\[[0-9;]*m")


@dataclass
class NotebookPage:
    name: str
    markdown: str = ""
    pictures: dict[str, bytes] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def add_picture(self, data: bytes, kind: str) -> str:
        """Keeps a picture. Returns its address on the page."""
        name = f"{self.name}-{len(self.pictures)}.{kind}"
        self.pictures[f"{PICTURES}/{name}"] = data
        return f"../{PICTURES}/{name}"


def page_of(path: Path, executed: Path) -> NotebookPage:
    """The page of a notebook. ``executed``: where its executed copy would be."""
    page = NotebookPage(path.stem)
    cells = json.loads(path.read_text())["cells"]
    outputs = outputs_of(cells, executed)
    parts = []
    for number, cell in enumerate(cells):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
        else:
            parts.append(f"```python\n{text}\n```")
            if outputs:
                parts += shown(outputs.pop(0), page)
        if number == 0:
            parts.append(note(path, executed, outputs is not None))
    page.markdown = "\n\n".join(parts) + "\n"
    return page


def note(path: Path, executed: Path, has_outputs: bool) -> str:
    download = f"[Download this notebook]({path.name}){{ download }}."
    if has_outputs:
        return f"{download} Its outputs are those of `scripts/notebooks`."
    why = "has other code" if executed.is_file() else "was not there"
    return (
        f"{download} This page has no outputs, because an executed copy {why}. "
        f"`scripts/notebooks {path.stem}` makes one, and `scripts/site` then shows them."
    )


def outputs_of(cells: list[Any], executed: Path) -> list[list[Any]] | None:
    """The outputs of each cell of code. None without a copy of the same code."""
    if not executed.is_file():
        return None
    ran = [c for c in json.loads(executed.read_text())["cells"] if c["cell_type"] == "code"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    if code != ["".join(cell["source"]) for cell in ran]:
        return None
    return [cell["outputs"] for cell in ran]


def shown(outputs: list[Any], page: NotebookPage) -> list[str]:
    """The outputs of a cell as Markdown."""
    parts = []
    printed = ""
    for output in outputs:
        if output["output_type"] == "stream":
            printed += "".join(output["text"])
            continue
        if printed:
            parts.append(text_block(printed, page))
            printed = ""
        if "data" in output:
            data = {kind: "".join(value) for kind, value in output["data"].items()}
            parts.append(richest(data, page))
        else:
            page.faults.append(f"a cell has an output of type {output['output_type']}")
    if printed:
        parts.append(text_block(printed, page))
    return parts


def richest(data: dict[str, str], page: NotebookPage) -> str:
    """One output in the best of its forms."""
    if "text/html" in data:
        return html_block(data["text/html"], page)
    if "image/svg+xml" in data:
        return picture(page.add_picture(data["image/svg+xml"].encode(), "svg"))
    if "image/png" in data:
        kind, coded = "png", base64.b64decode(data["image/png"])
        if len(coded) > MOST_PNG_BYTES and "image/jpeg" in data:
            kind, coded = "jpg", base64.b64decode(data["image/jpeg"])
        return picture(page.add_picture(coded, kind))
    return text_block(data.get("text/plain", ""), page)


def picture(address: str) -> str:
    return f'<p class="output"><img alt="The output of this code" src="{address}"></p>'


def html_block(html: str, page: NotebookPage) -> str:
    """HTML of a report or of a preview, without the data of its pictures."""

    def moved(found: re.Match[str]) -> str:
        kind = "jpg" if found[1] == "jpeg" else found[1]
        return f'alt="" src="{page.add_picture(base64.b64decode(found[2]), kind)}"'

    html = DATA.sub(moved, html)
    check_paths(html, page)
    # An empty line would end the block of HTML.
    html = re.sub(r"\n\s*\n", "\n", html)
    return f'<div class="output">{html}</div>'


def text_block(text: str, page: NotebookPage) -> str:
    text = COLOURS.sub("", text).rstrip("\n")
    check_paths(text, page)
    if "```" in text:
        page.faults.append("an output has ```, which would end its block")
    return f"```{{ .text .no-copy .output }}\n{text}\n```"


def check_paths(text: str, page: NotebookPage) -> None:
    page.faults += [f"an output has the path {path}" for path in MACHINE.findall(text)]

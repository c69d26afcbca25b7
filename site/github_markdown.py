"""Makes GitHub's Markdown readable for Python-Markdown, and compares the two.

Python-Markdown differs in two ways that our pages meet: what belongs to an item of a list is
indented by four spaces, and a list or a table needs an empty line before it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from markdown_it import MarkdownIt

# Fenced blocks, then spans of code.
CODE = re.compile(r"(^ *```.*?^ *```$|(?<!`)`[^`\n]+`(?!`))", re.MULTILINE | re.DOTALL)
BLOCKS = ("paragraph_open", "bullet_list_open", "ordered_list_open", "table_open", "fence")
COUNTED = re.compile(r"<(li|tr|h[1-6]|strong|em|pre|blockquote|img)[ >]")


def parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def without_code(markdown: str, change: Callable[[str], str]) -> str:
    """Changes the text outside code. Code within the text of a link belongs to the link."""
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        # A span of code stays in its link: only blocks, and spans with brackets, are held.
        if not found[0].lstrip().startswith("```") and "](" not in found[0]:
            return found[0]
        held.append(found[0])
        return f"\0{len(held) - 1}\0"

    text = change(CODE.sub(hold, markdown))
    return re.sub("\0(\\d+)\0", lambda found: held[int(found[1])], text)


def for_python_markdown(markdown: str) -> str:
    lines = markdown.split("\n")
    # For each line the items of lists around it: the first line, and the column of the content.
    around: list[list[tuple[int, int]]] = [[] for _ in lines]
    needs_blank = set()
    # Blocks of each open item, and of the last one that was closed.
    blocks: list[int] = []
    inner = 0
    before = None
    for token in parser().parse(markdown):
        if token.type == "list_item_open":
            # After an item of several blocks.
            if before == "list_item_close" and inner > 1:
                needs_blank.add(token.map[0])
            first, end = token.map
            column = re.match(r" *(?:[-*+]|\d+[.)]) +", lines[first]).end()
            for line in range(first, end):
                around[line].append((first, column))
            blocks.append(0)
        elif token.type in BLOCKS:
            if before in ("paragraph_close", "table_close", "fence"):
                needs_blank.add(token.map[0])
            if blocks:
                blocks[-1] += 1
        elif token.type == "list_item_close":
            inner = blocks.pop()
        # Nothing is needed after the text of a tight item.
        before = None if token.hidden else token.type
    out = []
    for number, (line, items) in enumerate(zip(lines, around, strict=True)):
        begun = [item for item in items if item[0] < number]
        if number in needs_blank and out and out[-1].strip():
            out.append("")
        if not line.strip() or not items:
            out.append(line)
        elif items != begun:
            out.append("    " * len(begun) + line.lstrip())
        else:
            column = begun[-1][1]
            indent = len(line) - len(line.lstrip())
            out.append("    " * len(begun) + line[min(column, indent) :])
    return "\n".join(out)


def count_elements(markdown: str) -> Counter[str]:
    """Elements that GitHub shows for a page."""
    return count_html(parser().render(markdown))


def count_html(html: str) -> Counter[str]:
    return Counter(COUNTED.findall(html))

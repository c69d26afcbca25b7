"""Reads the package's docstrings as Markdown. An extension of griffe.

They are written for a terminal: ``::`` before an example, keywords with an indented text below,
``docs/x.md`` and ``featherload.Name`` as plain code. On the site these become blocks of code, lists
of definitions and links.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import griffe

DOCS = Path(__file__).resolve().parent.parent / "docs"
EXAMPLE = re.compile(r"^( *)(.*?)::\n\n((?:\1    .*\n|\n)+)", re.MULTILINE)
# Lines of names, then indented lines that describe them.
ENTRY = re.compile(r"^((?:``[^\n]*\n)+)((?: {4}[^\n]*(?:\n|$))+)", re.MULTILINE)
PAGE = re.compile(r"``docs/([\w/-]+)\.md``")
NAME = re.compile(r"``(featherload(?:\.\w+)*\.\w+)``(?!\])")


def as_markdown(text: str, known: set[str]) -> str:
    text = EXAMPLE.sub(example, text + "\n")
    text = ENTRY.sub(definition, text)
    text = PAGE.sub(page_link, text)
    return NAME.sub(lambda found: name_link(found, known), text).rstrip()


def example(found: re.Match[str]) -> str:
    indent, before, code = found.groups()
    lead = f"{indent}{before}:\n\n" if before.strip() else ""
    body = textwrap.indent(textwrap.dedent(code).strip("\n"), indent)
    is_diff = re.match(r"\s*[-+]\w", code) is not None
    return f"{lead}{indent}```{'diff' if is_diff else 'python'}\n{body}\n{indent}```\n\n"


def definition(found: re.Match[str]) -> str:
    names = " ".join(line.strip() for line in found[1].splitlines())
    first, *rest = found[2].rstrip("\n").splitlines()
    lines = [f":   {first.strip()}", *rest]
    return f"\n{names}\n" + "\n".join(lines) + "\n\n"


def page_link(found: re.Match[str]) -> str:
    if not (DOCS / f"{found[1]}.md").is_file():
        raise FileNotFoundError(f"a docstring names docs/{found[1]}.md, which does not exist")
    # Pages of the API are one folder down.
    return f'<a href="../{found[1]}.html"><code>docs/{found[1]}.md</code></a>'


def name_link(found: re.Match[str], known: set[str]) -> str:
    return f"[`{found[1]}`][{found[1]}]" if found[1] in known else found[0]


class Docstrings(griffe.Extension):
    """Rewrites the docstrings of the package once it is loaded."""

    def on_package(self, *, pkg: griffe.Module, **_: object) -> None:
        known = {
            f"{module.path}.{name}"
            for module in [pkg, *pkg.modules.values()]
            if not module.name.startswith("_")
            for name in module.exports or []
            if not str(name).startswith("_") and not module[str(name)].is_module
        }
        self.rewrite(pkg, known)

    def rewrite(self, thing: griffe.Object, known: set[str]) -> None:
        if thing.docstring is not None:
            thing.docstring.value = as_markdown(thing.docstring.value, known)
        for member in thing.members.values():
            if not member.is_alias:
                self.rewrite(member, known)

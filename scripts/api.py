"""Lists the public API of the Rust crate, from the pages of rustdoc.

    api.py DOC            prints the list. DOC is the folder that `cargo doc` wrote of the crate
    api.py DOC --check    compares it with docs/api/rust.txt. Exits with 1 and prints the
                          differences, if there are any
    api.py DOC --write    writes that file

A line is an item, a method, or an implemented trait. Items begin at the left, and what belongs to
one is indented. Auto traits and blanket implementations are left out: they follow from the rest.
Pages are read instead of rustdoc's JSON, because stable Rust writes only pages.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

from api_list import finish

# Where the parts of a page begin that follow from the rest.
FOLLOWING = {
    "synthetic-implementations-list",
    "blanket-implementations-list",
    "implementors-list",
    "foreign-impls",
}
# Elements without an end.
VOID = {"area", "br", "hr", "img", "input", "link", "meta", "wbr"}


class ItemPage(HTMLParser):
    """Reads the declaration, the methods and the implemented traits of an item's page."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.open: list[tuple[str, str, str]] = []
        self.text: list[str] | None = None
        self.depth = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        given = dict(attributes)
        self.open.append((tag, given.get("class") or "", given.get("id") or ""))
        kind = self.open[-1][1].split()
        if "item-decl" in kind or "code-header" in kind:
            self.text, self.depth = [], len(self.open)

    def handle_endtag(self, tag: str) -> None:
        while self.open:
            closed, kind, _ = self.open.pop()
            kinds = kind.split()
            if self.text is not None and ("item-decl" in kinds or "code-header" in kinds):
                self.keep("item-decl" in kinds)
                self.text = None
            if closed == tag:
                return

    def handle_data(self, data: str) -> None:
        # What shows folded fields is no part of the text.
        is_hidden = any(tag == "summary" for tag, _, _ in self.open[self.depth :])
        if self.text is not None and not is_hidden:
            self.text.append(f" {data}" if data.startswith("where") else data)

    def keep(self, is_item: bool) -> None:
        if any(place in FOLLOWING for _, _, place in self.open):
            return
        text = re.sub(r"\s+", " ", "".join(self.text or [])).replace(" ⓘ", "").strip()
        text = re.sub(r"(#\[\w+\])(?=\S)", r"\1 ", text)
        # Variants are in the declaration, and this trait is an implementation of `match`.
        of_variant = any(place.startswith("variant.") for _, _, place in self.open)
        if of_variant or "StructuralPartialEq" in text:
            return
        # Methods of an implemented trait follow from the trait.
        in_traits = any(place == "trait-implementations-list" for _, _, place in self.open)
        if in_traits and not text.startswith(("impl", "unsafe impl")):
            return
        if not is_item and text.startswith("impl") and not in_traits:
            return
        self.lines.append(text if is_item else f"    {text}")


def pages(doc: Path) -> list[Path]:
    """The pages of all items, in the order of their paths."""
    index = (doc / "all.html").read_text()
    links = set(re.findall(r'<li><a href="([^"#]+)">', index))
    return sorted(doc / link for link in links)


def listed(doc: Path) -> str:
    lines = ["# The public API of the crate featherload. scripts/api writes this file.", ""]
    for page in pages(doc):
        place = page.relative_to(doc.parent)
        path = "::".join([*place.parent.parts, place.stem.split(".", 1)[1]])
        reader = ItemPage()
        reader.feed(page.read_text())
        if not reader.lines:
            sys.exit(f"api: {page} has no declaration: rustdoc writes other pages now")
        own, *others = reader.lines
        lines.append(f"{path}: {own}")
        lines += sorted(set(others))
    return "\n".join(lines) + "\n"


def main() -> None:
    doc, *options = sys.argv[1:]
    finish(listed(Path(doc)), "rust.txt", options)


main()

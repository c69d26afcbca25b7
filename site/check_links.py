"""Checks a built site: check_links.py FOLDER.

- Every link and picture within the site leads to a file, and to an anchor that it has.
- No page or style loads anything from another host. Links that a reader follows may lead there.
- The search index is there, and it has each page.

Pages of rustdoc in rust/ are not checked, but links to them are.
"""

from __future__ import annotations

import json
import os
import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes with an address that a browser loads without a click.
LOADED = {
    "audio": ["src"],
    "embed": ["src"],
    "iframe": ["src"],
    "image": ["href", "xlink:href"],
    "img": ["src"],
    "input": ["src"],
    "link": ["href"],
    "object": ["data"],
    "script": ["src"],
    "source": ["src"],
    "use": ["href", "xlink:href"],
    "video": ["src", "poster"],
}
# A link with one of these names an address without loading it.
NAMED = {"alternate", "canonical", "next", "prev"}
# The folder of the site on its host.
BASE = urlsplit(os.environ.get("FEATHERLOAD_SITE_URL", "")).path
STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "top"}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.in_style = False
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = {name: value or "" for name, value in attrs}
        self.anchors |= {of[name] for name in ("id", "name") if name in of}
        self.in_style = tag == "style"
        if tag == "a" and "href" in of:
            self.links.append(of["href"])
        kinds = set(of.get("rel", "").split())
        if tag == "link" and kinds & NAMED:
            if "canonical" not in kinds:
                self.links.append(of["href"])
            return
        self.loaded += [of[name] for name in LOADED.get(tag, ()) if name in of]
        self.loaded += [part.split()[0] for part in of.get("srcset", "").split(",") if part.strip()]
        self.loaded += styles(of.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self.in_style:
            self.loaded += styles(data)

    def handle_endtag(self, tag: str) -> None:
        self.in_style = False


def styles(text: str) -> list[str]:
    return [first or second for first, second in STYLE.findall(text)]


@cache
def page_of(path: Path) -> Page:
    return Page(path)


def fault_of(root: Path, at: Path, target: str, is_loaded: bool) -> str | None:
    """What is wrong with an address on a page, or nothing."""
    parts = urlsplit(target)
    if parts.scheme == "data":
        return None
    if parts.scheme or parts.netloc:
        return "is loaded from another host" if is_loaded else None
    place = unquote(parts.path)
    if place.startswith("/"):
        # Only the page for errors has these: it is shown at any depth.
        path = root / place.removeprefix(BASE).lstrip("/")
    else:
        path = at.parent / place if place else at
    if path.is_dir():
        path /= "index.html"
    if not path.is_file():
        return "leads to no file"
    if parts.fragment and path.suffix == ".html" and not is_loaded:
        anchor = unquote(parts.fragment)
        is_rustdoc = (root / "rust") in path.parents
        if not is_rustdoc and anchor not in page_of(path.resolve()).anchors:
            return "leads to no anchor"
    return None


def main() -> None:
    root = Path(sys.argv[1]).resolve()
    rust = root / "rust"
    pages = sorted(path for path in root.rglob("*.html") if rust not in path.parents)
    faults = []
    count = 0
    for path in pages:
        page = page_of(path)
        for is_loaded, targets in ((False, page.links), (True, page.loaded)):
            for target in targets:
                count += 1
                if fault := fault_of(root, path, target, is_loaded):
                    faults.append(f"{path.relative_to(root)}: '{target}' {fault}")
    for path in sorted(root.rglob("*.css")):
        if rust in path.parents:
            continue
        for target in styles(path.read_text()):
            if fault := fault_of(root, path, target, True):
                faults.append(f"{path.relative_to(root)}: '{target}' {fault}")
    index = json.loads((root / "search" / "search_index.json").read_text())["docs"]
    found = {entry["location"].partition("#")[0] for entry in index}
    for path in pages:
        place = path.relative_to(root).as_posix()
        if place not in found | {"404.html"}:
            faults.append(f"{place}: not in the search index")
    for fault in faults:
        print(f"site: {fault}", file=sys.stderr)
    if faults:
        sys.exit(1)
    print(f"site: {len(pages)} pages, {count} links and files, {len(index)} entries of the search")


if __name__ == "__main__":
    main()

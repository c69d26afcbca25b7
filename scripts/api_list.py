"""The lists of the public API in docs/api, which scripts/api compares with the source."""

import difflib
import sys
from pathlib import Path

LISTS = Path(__file__).resolve().parent.parent / "docs/api"


def finish(found: str, name: str, options: list[str]) -> None:
    """Prints the list, or writes it to docs/api/NAME (--write), or compares it with that file
    (--check). Exits with 1 and prints the differences, if there are any.
    """
    path = LISTS / name
    if "--write" in options:
        path.write_text(found)
    elif "--check" in options:
        kept = path.read_text().splitlines()
        changes = difflib.unified_diff(
            kept, found.splitlines(), f"docs/api/{name}", "now", n=1, lineterm=""
        )
        if text := "\n".join(changes):
            print(text)
            sys.exit(f"api: docs/api/{name} differs from the source: run scripts/api --write")
    else:
        print(found, end="")

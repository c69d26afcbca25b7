"""The docs' table of everything that translates, made of the registries in the code.

``python -m featherload._transforms_table`` prints it. ``docs/python/transforms-table.md`` holds it,
and a test compares both.
"""

from __future__ import annotations

from . import _huggingface, _timm, _transforms

_HEAD = """\
# Everything that translates

`python -m featherload._transforms_table` prints this page. Conditions and differences are in
[transforms](transforms.md).
"""


def page() -> str:
    """The page, as Markdown."""
    parts = [_HEAD]
    parts.append(
        _table(
            "torchvision",
            "Classes of `torchvision.transforms` and `torchvision.transforms.v2`, and classes that "
            "inherit\nfrom them and override nothing:",
            ("class", "operation", "condition"),
            [(f"`{name}`", one.to, one.where) for name, one in _transforms.TRANSFORMS.items()],
        )
    )
    parts.append(
        _table(
            "Other packages",
            "",
            ("class", "operation", "condition"),
            [(f"`{name}`", one.to, one.where) for name, one in sorted(_transforms.OTHERS.items())],
        )
    )
    parts.append(
        _table(
            "timm",
            "Keywords of `create_transform` whose other values are errors:",
            ("keyword", "accepted"),
            [(f"`{name}`", accepted) for name, accepted in sorted(_timm.accepted().items())],
        )
    )
    parts.append(
        _table(
            "Hugging Face",
            "Image processors, under all names of the classes (`...ImageProcessor`, "
            "`...ImageProcessorFast`,\n`...ImageProcessorPil`, `...FeatureExtractor`):",
            ("processor", "size by default", "steps"),
            [
                (f"`{name}`", _size(kind), _huggingface.described(kind))
                for name, kind in sorted(_huggingface.KINDS.items())
            ],
        )
    )
    return "\n".join(parts)


def _size(kind: _huggingface._Kind) -> str:
    if kind.size is None:
        return "none"
    return ", ".join(f"{key} {value}" for key, value in kind.size.items())


def _table(title: str, about: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [f"## {title}", "", *([about, ""] if about else [])]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(line.replace("  |", " |") for line in lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")

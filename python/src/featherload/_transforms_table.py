"""The docs' table of everything that translates, made of the registries in the code.

``python -m featherload._transforms_table`` prints it. ``docs/python/transforms-table.md`` holds it,
and a test compares both.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import (
    _albumentations,
    _crops,
    _huggingface,
    _other_transforms,
    _patch_processors,
    _timm,
    _transforms,
)
from ._image_processors import KINDS, ProcessorKind
from ._patch_processors import PATCH_KINDS

_HEAD = """\
# Everything that translates

`python -m featherload._transforms_table` prints this page. Conditions and differences are in
[transforms](transforms.md).
"""


_FIVE = "no other transform has random values; those after it are of `v2`"
_VIEWS = "and classes that keep its `__call__`, such as `DINOTransform`, `SimCLRTransform`"


def page() -> str:
    """The page, as Markdown."""
    parts = [_HEAD]
    parts.append(
        _table(
            "torchvision",
            "Classes of `torchvision.transforms` and `torchvision.transforms.v2`, and classes that "
            "inherit\nfrom them and override nothing:",
            ("class", "operation", "condition"),
            _rows(_transforms.TRANSFORMS),
        )
    )
    parts.append(
        _table(
            "Other packages",
            "",
            ("class", "operation", "condition"),
            _rows(_other_transforms.PACKAGES),
        )
    )
    parts.append(
        _table(
            "Scripts",
            "Classes that scripts define, known by the code of their `__call__`:",
            ("class", "operation", "condition"),
            [
                (one.name, one.known.operation, one.known.condition)
                for one in _other_transforms.SCRIPTS.values()
            ],
        )
    )
    parts.append(
        _table(
            "Several images",
            "Transforms that return several images, which are [crops](crops.md):",
            ("class", "crops", "condition"),
            [
                ("`FiveCrop`, `TenCrop`", "5, 10", _FIVE),
                ("`lightly.transforms.MultiViewTransform`", "its transforms", _VIEWS),
                *((one.name, one.crops, one.condition) for one in _crops.VIEWS.values()),
            ],
        )
    )
    parts.append(
        _table(
            "albumentations",
            "Classes of albumentations 2 in a `Compose`:",
            ("class", "operation", "condition"),
            _rows(_albumentations.TRANSFORMS),
        )
    )
    parts.append(
        _table(
            "timm",
            "Keywords of `create_transform` whose other values are errors:",
            ("keyword", "accepted"),
            [(f"`{name}`", accepted) for name, accepted in sorted(_timm.accepted_values().items())],
        )
    )
    parts.append(
        _table(
            "Hugging Face",
            "Image processors, under all names of the classes (`...ImageProcessor`, "
            "`...ImageProcessorFast`,\n`...ImageProcessorPil`, `...FeatureExtractor`):",
            ("processor", "size by default", "steps"),
            sorted(
                [
                    *(
                        (f"`{name}`", _size(kind), _huggingface.steps_text(kind))
                        for name, kind in KINDS.items()
                    ),
                    *(
                        (
                            f"`{name}`",
                            _patch_processors.size_text(kind),
                            _patch_processors.steps_text(kind),
                        )
                        for name, kind in PATCH_KINDS.items()
                    ),
                ]
            ),
        )
    )
    return "\n".join(parts)


def _rows(known: Mapping[str, _transforms.Known]) -> list[tuple[str, ...]]:
    return [(f"`{name}`", one.operation, one.condition) for name, one in sorted(known.items())]


def _size(kind: ProcessorKind) -> str:
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

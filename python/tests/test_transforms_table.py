"""The docs' table of everything that translates is the code's."""

from __future__ import annotations

import os
from pathlib import Path

from featherload import _transforms_table

PAGE = Path(__file__).parents[2] / "docs" / "python" / "transforms-table.md"


def test_the_page_is_the_codes() -> None:
    made = _transforms_table.page()
    if "FEATHERLOAD_WRITE_DOCS" in os.environ:
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made, "write it with FEATHERLOAD_WRITE_DOCS=1"


def test_every_operation_of_the_page_is_one_of_recipes() -> None:
    import re
    import subprocess

    executable = os.environ.get("FEATHERLOAD_EXECUTABLE", "featherload")
    listed = subprocess.run([executable, "ops"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"\b[a-z][a-z0-9_]+\b", listed))
    from featherload._other_transforms import PACKAGES, SCRIPTS
    from featherload._transforms import TRANSFORMS

    scripts = [one.known for one in SCRIPTS.values()]
    for one in [*TRANSFORMS.values(), *PACKAGES.values(), *scripts]:
        for name in re.findall(r"`([a-z][a-z0-9_]+)`", one.operation):
            assert name in known, name


def test_every_class_of_a_package_exists() -> None:
    import importlib

    from conftest import need

    from featherload._other_transforms import PACKAGES

    for name in PACKAGES:
        module, kind = name.rsplit(".", 1)
        need(module.split(".")[0])
        assert isinstance(getattr(importlib.import_module(module), kind), type), name


def test_values_of_timms_keywords_are_as_the_page_tells() -> None:
    """What the page names translates, and other values of timm do not."""
    import ast
    import re

    import pytest

    from featherload import ConfigError, _timm
    from featherload.recipes import create_transform

    other = {
        **dict.fromkeys(("separate", "naflex", "patchify", "use_prefetcher"), True),
        "auto_augment": "v1",
        "interpolation": "box",
        "re_count": 2,
        "re_mode": "rand",
        "re_num_splits": 2,
    }
    told = _timm.accepted_values()
    assert set(told) == set(other)
    for keyword, text in told.items():
        shown = re.findall(r"`([^`]+)`", text.split(";")[0])
        if keyword == "auto_augment":
            kinds, shown = shown[2:], shown[:2]
            assert kinds == ["rand", "augmix", "original", "originalr", "v0", "v0r"]
            shown += [repr(f"{kind}-mstd0.5") for kind in kinds]
        values = [ast.literal_eval(value) for value in shown]
        assert values
        for value in values:
            assert create_transform(32, True, re_prob=0.5, **{keyword: value})["ops"]
        with pytest.raises(ConfigError, match=keyword):
            create_transform(32, True, re_prob=0.5, **{keyword: other[keyword]})
    assert create_transform(32, True, interpolation="random")["ops"]
    # All values of these translate.
    for mode in (None, "center", "squash", "border"):
        for size in (32, (3, 20, 24)):
            assert create_transform(size, crop_mode=mode)["ops"]

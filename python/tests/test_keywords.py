"""Every keyword refuses a wrong value by its name, as ``ConfigError``: none comes back as an
``OverflowError``, a ``ValueError`` or a ``TypeError`` of the extension's.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need, write_scene

import featherload
from featherload import cache, samplers
from featherload._preview import _png as png
from featherload._values import shown

VALUES = [
    *(-1, -(2**63), 2**31, 2**32, 2**62 + 1, 2**63, 2**64, 10**40, 10**5000),
    *(float("nan"), float("inf"), -1.5, 1.5, 1e308, True),
    *("x", "", "a\0b", b"x", [], {}, (1, 2), object(), np.float32(0.5)),
]
LONGEST = 600
"""Characters of an error: no value is printed whole."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("few")
    for number in range(3):
        (folder / f"{number}.png").write_bytes(png(np.zeros((20, 30, 3), np.uint8)))
    return folder


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scene(tmp_path_factory.mktemp("scene") / "tiny")


def check(call: Callable[[], Any], keyword: str, value: Any, *others: str) -> None:
    """``call`` is given ``value``: it takes it, or names the keyword, or one of ``others``."""
    try:
        call()
    except featherload.Error as error:
        text = str(error)
        assert len(text) < LONGEST, (keyword, len(text))
        # A text may be the path of something that is not there.
        if isinstance(value, str) and isinstance(error, featherload.DatasetError):
            assert "\0" not in value, (keyword, text)
            return
        names = (keyword, *others)
        named = error.option in names or any(name in text for name in names)
        assert named, (keyword, shown(value), text)
    except Exception as error:
        pytest.fail(f"{keyword}={shown(value)}: {type(error).__name__}: {error}")


def keywords(function: Any) -> Iterator[str]:
    """Those that a signature names, but ``**options``."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD and parameter.name != "self":
            yield parameter.name


def check_all(call: Callable[..., Any], of: Any, **fixed: Any) -> None:
    for keyword in keywords(of):
        for value in VALUES:
            given = {**fixed, keyword: value}
            check(lambda: call(**given), keyword, value)  # noqa: B023


def test_of_a_loader(folder: Path) -> None:
    check_all(featherload.plan, featherload.Loader, src=folder, batch_size=1)


def test_of_rays_and_views(scene: Path) -> None:
    check_all(featherload.Rays.plan, featherload.Rays, scene=scene)
    check_all(featherload.Views.plan, featherload.Views, scene=scene)


def test_of_a_scene(scene: Path) -> None:
    check_all(featherload.Scene, featherload.Scene, path=scene)


def test_of_samplers(folder: Path, scene: Path) -> None:
    for name in samplers.__all__:
        kind = getattr(samplers, name)
        if not dataclasses.is_dataclass(kind):
            continue
        is_of_rays = issubclass(kind, samplers.RaySampler)
        needed = {"size": 2} if name == "Patches" else {}
        for field in dataclasses.fields(kind):
            for value in VALUES:
                made = kind(**{**needed, field.name: value})  # type: ignore[operator]
                if is_of_rays:
                    call = lambda: featherload.Rays.plan(scene, 64, sampler=made)  # noqa: E731, B023
                else:
                    call = lambda: featherload.plan(folder, batch_size=1, sampler=made)  # noqa: E731, B023
                check(call, "sampler", value, field.name, "rays")


def test_of_methods(folder: Path, scene: Path) -> None:
    with (
        featherload.Loader(folder, batch_size=1, num_workers=1) as loader,
        featherload.Rays(scene, 8, num_workers=1) as rays,
        featherload.Views(scene, num_workers=1) as views,
    ):
        batch, view = next(iter(loader)), next(views)
        preview = loader.preview(1)
        methods: list[Callable[..., Any]] = [
            *(loader.set_epoch, loader.sampler.set_epoch, loader.load_state_dict),
            *(rays.go_to, rays.load_state_dict, views.go_to, views.load_state_dict),
            *(batch.record_stream, view.record_stream, preview.grid),
        ]
        for method in methods:
            check_all(method, method)
        for value in VALUES:
            check(lambda: rays.next(value), "rays", value)  # noqa: B023
            check(lambda: loader.preview(value), "rows", value)  # noqa: B023
        for value in (2**62 + 1, 2**63, 2**64, -1, None):
            for call in (loader.set_epoch, rays.go_to, views.go_to):
                with pytest.raises(featherload.ConfigError):
                    call(value)  # type: ignore[arg-type]


def test_of_tools(folder: Path, tmp_path: Path) -> None:
    for keyword in keywords(cache.build):
        # Any text is a place for a cache.
        if keyword in ("dst", "stage_dir", "progress", "finish", "force"):
            continue
        for value in (-1, 2**64, 10**5000, float("nan"), 1.5, "a\0b", b"x", [], object()):
            given = {"src": folder, "dst": tmp_path / "cache", "progress": False, keyword: value}
            check(lambda: cache.build(**given), keyword, value)  # noqa: B023
    for call in (cache.info, cache.verify, featherload.index, featherload.doctor):
        with pytest.raises(featherload.ConfigError, match="NUL byte"):
            call("a\0b")
    with pytest.raises(featherload.ConfigError, match="root .* NUL byte"):
        featherload.index(folder, root="a\0b")
    with pytest.raises(featherload.ConfigError, match="'-1G' for 'max_pixels'|max_pixels"):
        featherload.rss(folder, num_workers=[1], max_pixels="-1G")
    with pytest.raises(featherload.ConfigError, match="num_workers -1 is too small"):
        featherload.rss(folder, num_workers=[-1])


def test_of_torchs_and_gsplats_names(scene: Path) -> None:
    need("torch")
    from featherload.gsplat import Dataset, Parser
    from featherload.torch import _check_numbers

    check_all(
        *(_check_numbers, _check_numbers),
        **{"batch_size": 1, "num_workers": 0, "drop_last": False, "timeout": 0},
    )
    for name in ("factor", "test_every"):
        for value in (-1, True, 1.5, "x", 10**5000):
            with pytest.raises(featherload.ConfigError, match=name):
                Parser(scene, **{name: value})  # type: ignore[arg-type]
    for value in (-1, True, 1.5, "x"):
        with pytest.raises(featherload.ConfigError, match="patch_size"):
            Dataset(object(), patch_size=value)  # type: ignore[arg-type]


def test_errors_name_keywords(folder: Path, tmp_path: Path) -> None:
    for call in (
        lambda: featherload.plan(folder, num_workers=5000),
        lambda: cache.build(folder, tmp_path / "c", num_workers=5000, progress=False),
    ):
        with pytest.raises(featherload.ConfigError, match="`num_workers`") as caught:
            call()
        assert caught.value.option == "num_workers"

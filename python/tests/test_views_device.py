"""Views on a GPU, as torch takes them. SKIP without one; FEATHERLOAD_REQUIRE_GPU=1 fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import write_scene

import featherload

torch = pytest.importorskip("torch")

if not torch.cuda.is_available():
    if os.environ.get("FEATHERLOAD_REQUIRE_GPU"):
        raise RuntimeError("FEATHERLOAD_REQUIRE_GPU is set and torch sees no GPU")
    pytest.skip("SKIP: torch sees no GPU", allow_module_level=True)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scene(tmp_path_factory.mktemp("scene") / "tiny")


def views(scene: Path, **options: Any) -> featherload.Views:
    return featherload.Views(scene, num_workers=2, split_by="all", framework="torch", **options)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_views_of_the_gpu_are_the_cpus(scene: Path, dtype: str) -> None:
    with (
        views(scene, device="cuda", dtype=dtype) as gpu,
        views(scene, dtype=dtype) as cpu,
    ):
        for _ in range(len(cpu) + 2):
            made, wanted = next(gpu), next(cpu)
            assert made.device == "cuda:0" and made.index == wanted.index
            for name in ("image", "mask", "depth"):
                there, here = getattr(made, name), getattr(wanted, name)
                assert (there is None) == (here is None)
                if here is not None:
                    assert there.is_cuda and there.dtype == here.dtype
                    assert torch.equal(there.cpu(), here)
            assert made.image.data_ptr() == made.torch().image.data_ptr()
            assert isinstance(made.numpy().image, np.ndarray)
            assert (made.numpy().image == wanted.image.numpy()).all()


@pytest.mark.parametrize("recorded", [True, False])
def test_memory_is_not_written_while_kernels_wait(scene: Path, recorded: bool) -> None:
    with views(scene) as cpu:
        wanted = [next(cpu).image.sum().item() for _ in range(40)]
    assert len(set(wanted)) > 1
    got = []
    with views(scene, device="cuda", depth=2) as gpu:
        side = torch.cuda.Stream() if recorded else torch.cuda.current_stream()
        for _ in range(40):
            view = next(gpu)
            image = view.image
            side.wait_stream(torch.cuda.current_stream())
            if recorded:
                view.record_stream(side)
            with torch.cuda.stream(side):
                # A hundredth of a second of work that nobody waits for, and the view goes.
                torch.cuda._sleep(10_000_000)
                got.append(image.sum())
            del view, image
        torch.cuda.synchronize()
    assert [g.item() for g in got] == wanted


def test_held_views_stay_and_too_many_are_an_error_that_says_so(scene: Path) -> None:
    with views(scene, device="cuda", depth=2, hold_timeout=0.1) as gpu:
        held = [next(gpu), next(gpu)]
        before = [view.image.clone() for view in held]
        with pytest.raises(featherload.BatchesHeldError, match="depth"):
            next(gpu)
        for view, image in zip(held, before, strict=True):
            assert torch.equal(view.image, image)
        del held, view
        assert next(gpu).step == 2

"""Rays on a GPU, as torch takes them. SKIP without one; FEATHERLOAD_REQUIRE_GPU=1 fails."""

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


def rays(scene: Path, **options: Any) -> featherload.Rays:
    return featherload.Rays(scene, 960, num_workers=2, split_by="all", **options)


def test_rays_of_the_gpu_are_the_cpus(scene: Path) -> None:
    with (
        rays(scene, device="cuda", framework="torch") as gpu,
        rays(scene, framework="torch") as cpu,
    ):
        for _ in range(5):
            made, wanted = next(gpu), next(cpu)
            assert made.device == "cuda:0" and set(made) == set(wanted)
            for name, there in made.items():
                assert there.is_cuda and there.dtype == wanted[name].dtype
                assert there.shape == wanted[name].shape
                if there.is_floating_point() and name not in ("colors", "depths", "times"):
                    assert torch.allclose(there.cpu(), wanted[name], rtol=1e-6, atol=1e-6)
                else:
                    assert torch.equal(there.cpu(), wanted[name])
            assert made.origins.data_ptr() == made.torch().origins.data_ptr()
            assert (made.numpy().indices == wanted.indices.numpy()).all()


def test_a_run_goes_on_by_its_state(scene: Path) -> None:
    with rays(scene, device="cuda", framework="torch") as one:
        for _ in range(3):
            next(one)
        state = one.state_dict()
        wanted = [next(one).indices.cpu() for _ in range(2)]
    with rays(scene, framework="torch") as other:
        other.load_state_dict(state)
        assert all(torch.equal(next(other).indices, w) for w in wanted)


@pytest.mark.parametrize("recorded", [True, False])
def test_memory_is_not_written_while_kernels_wait(scene: Path, recorded: bool) -> None:
    with rays(scene, framework="torch") as cpu:
        wanted = [next(cpu).indices.sum().item() for _ in range(40)]
    got = []
    with rays(scene, device="cuda", framework="torch", depth=2) as gpu:
        side = torch.cuda.Stream() if recorded else torch.cuda.current_stream()
        for _ in range(40):
            batch = next(gpu)
            indices = batch.indices
            side.wait_stream(torch.cuda.current_stream())
            if recorded:
                batch.record_stream(side)
            with torch.cuda.stream(side):
                # A hundredth of a second of work that nobody waits for, and the rays go.
                torch.cuda._sleep(10_000_000)
                got.append(indices.sum())
            del batch, indices
        torch.cuda.synchronize()
    assert [g.item() for g in got] == wanted


def test_held_rays_stay_and_too_many_are_an_error_that_says_so(scene: Path) -> None:
    with rays(scene, device="cuda", framework="torch", depth=2, hold_timeout=0.1) as gpu:
        held = [next(gpu), next(gpu)]
        before = [batch.indices.clone() for batch in held]
        with pytest.raises(featherload.BatchesHeldError, match="depth"):
            next(gpu)
        for batch, indices in zip(held, before, strict=True):
            assert torch.equal(batch.indices, indices)
        del held, batch
        assert next(gpu).step == 2


def test_numpy_takes_a_copy(scene: Path) -> None:
    with rays(scene, device="cuda") as gpu:
        batch = next(gpu)
        assert isinstance(batch.colors, np.ndarray) and batch.device == "cuda:0"

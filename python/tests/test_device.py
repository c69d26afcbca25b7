"""Batches on a GPU, as torch takes them. SKIP without one; FEATHERLOAD_REQUIRE_GPU=1 fails."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import featherload

torch = pytest.importorskip("torch")
Make = Callable[..., featherload.Loader]

if not torch.cuda.is_available():
    if os.environ.get("FEATHERLOAD_REQUIRE_GPU"):
        raise RuntimeError("FEATHERLOAD_REQUIRE_GPU is set and torch sees no GPU")
    pytest.skip("SKIP: torch sees no GPU", allow_module_level=True)


def test_torch_shares_the_pointer(loader: Make) -> None:
    batch = next(iter(loader(device="cuda")))
    images, labels = batch
    assert images.is_cuda and labels.is_cuda and images.dtype == torch.float32
    again, _ = batch.torch()
    interface = batch._of_loader.images().__cuda_array_interface__
    assert images.data_ptr() == again.data_ptr() == interface["data"][0]
    assert (batch.numpy()[0] == images.cpu().numpy()).all()
    assert batch.device == "cuda:0" and batch.paths()[0].is_file()
    with pytest.raises(BufferError, match="on a device"):
        memoryview(batch._of_loader.images())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="stream 0"):
        batch._of_loader.images().__dlpack__(stream=0)
    with pytest.raises(BufferError, match="per-thread default stream"):
        batch._of_loader.images().__dlpack__(stream=2)


def sums(loader: featherload.Loader) -> list[Any]:
    return [images.double().sum().item() for images, _ in loader]


def test_the_gpus_batches_are_the_cpus_but_for_rounding(loader: Make) -> None:
    for (a, la), (b, lb) in zip(loader(device="cuda"), loader(framework="torch"), strict=True):
        # Levels are not rounded on the way: half of one, over the least deviation.
        assert (a.cpu() - b).abs().max() < 2.6 / 255 / 0.224
        assert (la.cpu() == lb).all()


def test_a_kernel_on_another_stream_sees_finished_pixels(loader: Make) -> None:
    wanted = sums(loader(device="cuda"))
    for _ in range(5):
        side = torch.cuda.Stream()
        got = []
        with torch.cuda.stream(side):
            for images, _ in loader(device="cuda"):
                got.append(images.double().sum())
        torch.cuda.synchronize()
        assert [g.item() for g in got] == wanted


class Unordered:
    """Pixels handed on with the order of the legacy default stream, which is not the reader's."""

    def __init__(self, images: Any) -> None:
        self.images = images

    def __dlpack_device__(self) -> Any:
        return self.images.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        return self.images.__dlpack__(stream=1, **options)


def sums_on_a_busy_device(loader: featherload.Loader, *, ordered: bool) -> list[float]:
    """Sums by a stream that goes before all others, while something else fills the device."""
    side, busy = torch.cuda.Stream(priority=-1), torch.cuda.Stream()
    other = torch.zeros(16384, 16384, device="cuda")
    torch.cuda.synchronize()
    got = []
    for _ in range(3):
        with torch.cuda.stream(busy):
            product = other @ other
        for batch in loader:
            images = batch._of_loader.images()
            with torch.cuda.stream(side):
                pixels = torch.from_dlpack(images if ordered else Unordered(images))
                got.append(pixels.double().sum())
            with torch.cuda.stream(busy):
                product = other @ other
            side.synchronize()
    torch.cuda.synchronize()
    assert product.shape == other.shape
    return [g.item() for g in got]


def test_a_stream_that_goes_first_waits_for_the_pixels(loader: Make) -> None:
    one = loader(device="cuda", batch_size=128)
    wanted = [total for _ in range(3) for total in sums(one)]
    again = loader(device="cuda", batch_size=128)
    assert sums_on_a_busy_device(again, ordered=True) == wanted
    # Without the order it reads what is not there yet: this test can fail.
    again = loader(device="cuda", batch_size=128)
    assert sums_on_a_busy_device(again, ordered=False) != wanted


def test_memory_is_not_written_while_kernels_of_a_dropped_tensor_wait(loader: Make) -> None:
    wanted = sums(loader(device="cuda", depth=2, batch_size=16))
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        got = []
        with torch.cuda.stream(stream):
            for batch in loader(device="cuda", depth=2, batch_size=16):
                images = batch.images
                del batch
                # A tenth of a second of work that nobody waits for, and the tensor goes.
                torch.cuda._sleep(100_000_000)
                got.append(images.double().sum())
                del images
        torch.cuda.synchronize()
        assert [g.item() for g in got] == wanted


def sums_on_another_stream(loader: featherload.Loader, *, recorded: bool) -> list[float]:
    """Sums by kernels that wait on a stream which the loader knows of only if it is told."""
    side = torch.cuda.Stream()
    got = []
    for batch in loader:
        images = batch.images
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(100_000_000)
            got.append(images.double().sum())
        if recorded:
            batch.record_stream(side)
        del batch, images
    torch.cuda.synchronize()
    return [g.item() for g in got]


def test_record_stream_holds_memory_for_another_stream(loader: Make) -> None:
    wanted = sums(loader(device="cuda", depth=2, batch_size=16))
    told = sums_on_another_stream(loader(device="cuda", depth=2, batch_size=16), recorded=True)
    assert told == wanted
    # Without it they read what came later: the test above can fail.
    untold = sums_on_another_stream(loader(device="cuda", depth=2, batch_size=16), recorded=False)
    assert untold != wanted


def test_kept_batches_are_copied_before_memory_ends(loader: Make) -> None:
    wanted = sums(loader(device="cuda", batch_size=16))
    with pytest.warns(RuntimeWarning, match="depth is 4") as told:
        kept = list(loader(device="cuda", batch_size=16))
    assert len(told) == 1
    assert [batch.images.double().sum().item() for batch in kept] == wanted
    assert kept[10].ids.shape == (16,)


def test_memory_is_flat(loader: Make) -> None:
    one = loader(device="cuda", batch_size=13)
    assert len(one) == 20

    def memory() -> tuple[int, int]:
        gc.collect()
        torch.cuda.synchronize()
        with open("/proc/self/statm") as file:
            resident = int(file.read().split()[1]) * 4096
        return torch.cuda.mem_get_info()[0], resident

    epochs = int(os.environ.get("FEATHERLOAD_FLAT_EPOCHS", "20"))
    for _ in range(5):
        sums(one)
    free, resident = memory()
    for _ in range(epochs):
        sums(one)
    later, resident_later = memory()
    grown = resident_later - resident
    print(f"{epochs} epochs: {free - later} bytes of the device, {grown} of the host")
    assert free - later <= 0
    assert grown < 8 << 20


def test_jax_takes_batches_of_the_device(loader: Make) -> None:
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("SKIP: JAX sees no GPU")
    wanted = loader(device="cuda", framework="torch")
    for (images, _), (same, _) in zip(loader(device="cuda", framework="jax"), wanted, strict=True):
        assert (np.asarray(images) == same.cpu().numpy()).all()


def test_timms_prefetcher_takes_levels_to_the_device(loader: Make) -> None:
    pytest.importorskip("timm")
    from timm.data.loader import PrefetchLoader

    recipe = {"ops": [{"resize": {"size": 256}}, {"center_crop": {"size": 224}}]}
    levels = loader(recipe=recipe, dtype="uint8", layout="nchw", framework="torch")
    prefetched = PrefetchLoader(levels, device=torch.device("cuda"))
    plain = loader(recipe="eval224", decode="scaled", framework="torch")
    taken = 0
    for (images, labels), (expected, of) in zip(prefetched, plain, strict=True):
        assert images.is_cuda and (labels.cpu() == of).all()
        assert (images.cpu() - expected).abs().max() < 1e-5
        taken += 1
    assert taken == 8


def outlined(number: int) -> dict[str, Any]:
    """Up to three triangles in the middle of image ``number``."""
    corners = [[20.0 + 6 * k, 15.0 + 5 * k] for k in range(number % 4)]
    return {
        "boxes": [[x, y, x + 24, y + 20] for x, y in corners],
        "labels": list(range(len(corners))),
        "polygons": [[[[x, y], [x + 24, y + 3], [x + 5, y + 20]]] for x, y in corners],
    }


def leaves(value: Any) -> list[Any]:
    """The arrays of nested dicts and lists, in their order."""
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in leaves(one)]
    if isinstance(value, list):
        return [leaf for one in value for leaf in leaves(one)]
    return [value]


@pytest.mark.parametrize("decode_on", ["cpu", "gpu"])
@pytest.mark.parametrize("targets", ["list", "flat", "padded", "detr"])
def test_objects_and_their_masks_are_on_the_device(
    loader: Make, targets: str, decode_on: str
) -> None:
    files = [outlined(number) for number in range(len(loader().dataset))]
    options: dict[str, Any] = {
        "recipe": "train224",
        "objects": {"files": files, "masks": "quarter"},
        "targets": targets,
        "batch_size": 16,
        "framework": "torch",
    }
    on_device = {**options, "device": "cuda", "decode_on": decode_on}
    seen, kept = 0, []
    with pytest.warns(RuntimeWarning, match="depth is 4"):
        for batch in loader(**on_device):
            kept.append(batch)
    for got, want in zip(kept, loader(**options), strict=True):
        assert got.images.is_cuda and got.images.shape == want.images.shape
        assert (got.ids == want.ids).all()
        pairs = list(zip(leaves(got.targets), leaves(want.targets), strict=True))
        for mine, other in pairs:
            if isinstance(other, int):
                assert mine == other
                continue
            assert mine.is_cuda and mine.dtype == other.dtype
            assert torch.equal(mine.cpu(), other)
        masks = [mask.cpu() for mask in got.objects.masks]
        assert all(torch.equal(*two) for two in zip(masks, want.objects.masks, strict=True))
        here = got.to("cpu").objects.masks
        assert all(torch.equal(*two) for two in zip(here, masks, strict=True))
        seen += sum(int(mask.sum()) for mask in masks)
    assert seen > 500

"""Memory of batches: shared, kept for as long as anybody looks at it, never lost."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need

import featherload

Make = Callable[..., featherload.Loader]


def test_a_batch_unpacks_and_knows_its_rows(loader: Make, photos: Path) -> None:
    one = loader()
    batch = next(iter(one))
    images, labels = batch
    assert images is batch.images and labels is batch[1] and len(batch) == 2
    assert images.shape == (32, 3, 224, 224) and images.dtype == np.float32
    assert labels.shape == (32,) and labels.dtype == np.int64
    assert batch.ids.dtype == np.uint64 and batch.good_rows() == list(range(32))
    assert set(batch.status) == {featherload.RowStatus.OK} and not batch.repeated.any()
    assert (batch.epoch, batch.number, batch.device) == (0, 0, "cpu")
    for path, id, label in zip(batch.paths(), batch.ids, labels, strict=True):
        assert path.is_file() and one.dataset[int(id)] == (path, label)
        assert path.parent.name == one.dataset.classes[label]
    assert one.dataset.class_to_idx["class_03"] == 3 and len(one.dataset) == 256
    with pytest.raises(IndexError):
        one.dataset[256]
    assert "0 of epoch 0: 32 x 3 x 224 x 224" in repr(batch)
    # As accelerate and Lightning make one of another.
    moved = type(batch)(x for x in batch)
    assert moved.images is images
    with pytest.raises(AttributeError, match="made from another batch"):
        moved.ids  # noqa: B018
    again = pickle.loads(pickle.dumps(batch))
    assert type(again) is tuple and (again[0] == images).all()
    assert copy.copy(batch)[0] is images


def test_rows_of_own_sizes(loader: Make) -> None:
    batch = next(iter(loader(recipe="full", batch_size=8)))
    assert isinstance(batch.images, list) and len(batch.images) == 8
    assert all(row.dtype == np.uint8 and row.shape[2] == 3 for row in batch.images)
    assert len({row.shape for row in batch.images}) > 1
    need("torch")
    rows, _ = batch.torch()
    assert all((r.numpy() == n).all() for r, n in zip(rows, batch.images, strict=True))


def test_bad_samples(loader: Make, photos: Path, tmp_path: Path) -> None:
    for number, path in enumerate(sorted(photos.rglob("*.jpg"))[:8]):
        data = path.read_bytes()
        (tmp_path / f"{number}.jpg").write_bytes(data[:200] if number == 5 else data)
    with pytest.raises(featherload.SampleError) as failed:
        list(loader(tmp_path, batch_size=8))
    assert failed.value.path == str(tmp_path / "5.jpg") and failed.value.id == 5
    assert failed.value.kind == "truncated"
    assert "give on_error='skip' to mask such samples" in str(failed.value)
    batch = next(
        iter(loader(tmp_path, batch_size=10, on_error="skip", pad_last=True, shuffle=False))
    )
    assert batch.status[5] is featherload.RowStatus.FAILED
    assert batch.status[9] is featherload.RowStatus.PADDING
    assert batch.good_rows() == [0, 1, 2, 3, 4, 6, 7] and not batch.images[5].any()
    assert batch.paths()[8:] == [None, None]
    (fault,) = batch.faults
    assert (fault.row, fault.id, fault.kind) == (5, 5, "truncated") and fault.substitute is None
    assert fault.path == tmp_path / "5.jpg"
    batch = next(iter(loader(tmp_path, batch_size=8, on_error="substitute", shuffle=False)))
    assert batch.ids.tolist() == [0, 1, 2, 3, 4, 6, 6, 7] and batch.faults[0].substitute == 6


def test_an_array_keeps_its_slot_and_the_last_slot_is_never_held(loader: Make) -> None:
    one = loader(depth=4, batch_size=16)
    with pytest.warns(RuntimeWarning, match="depth is 4: .* give depth=8") as told:
        kept = list(one)
    assert len(told) == 1 and len(kept) == 16
    other = loader(depth=20, batch_size=16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for old, new in zip(kept, other, strict=True):
            assert (old.images == new.images).all()
            assert np.shares_memory(new.numpy()[0], new.images)


def test_a_plain_loop_and_one_kept_array_are_never_copied(loader: Make) -> None:
    one = loader(batch_size=16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        last = None
        for images, _ in one:
            last, previous = images, last
            assert previous is None or previous.shape == images.shape


def test_arrays_outlive_everything(loader: Make) -> None:
    one = loader()
    images = next(iter(one)).images
    before = images.sum()
    one.close()
    del one
    gc.collect()
    assert images.sum() == before
    images *= 0


def test_a_closed_loader_says_so(loader: Make) -> None:
    one = loader()
    with one:
        next(iter(one))
    with pytest.raises(featherload.ConfigError, match="was closed"):
        next(iter(one))
    with pytest.raises(TypeError, match="cannot go to another process"):
        pickle.dumps(one)


def test_cycles_are_collected(loader: Make) -> None:
    one = loader(depth=4, batch_size=16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in one:
            ring: list[Any] = [batch]
            ring.append(ring)
            del batch, ring
            gc.collect()


def test_batches_of_another_thread(loader: Make) -> None:
    one = loader()
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.extend(b.images.sum() for b in one))
    thread.start()
    thread.join()
    one.set_epoch(0)
    assert got == [b.images.sum() for b in one]


@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
def test_torch_shares_the_memory(loader: Make, dtype: str) -> None:
    need("torch")
    import torch

    one = loader(framework="torch", dtype=getattr(torch, dtype), recipe=no_normalize())
    batch = next(iter(one))
    images, labels = batch
    assert images.dtype == getattr(torch, dtype) and labels.dtype == torch.int64
    again, _ = batch.torch()
    assert again.data_ptr() == images.data_ptr()
    images[0] = 1
    assert (again[0] == 1).all()
    if dtype == "bfloat16":
        with pytest.raises(BufferError, match="no bfloat16"):
            memoryview(batch._of_loader.images())  # type: ignore[arg-type]
    else:
        assert (batch.numpy()[0] == images.numpy()).all()


def test_a_batch_moves_as_torchs_tensors_do(loader: Make) -> None:
    need("torch")
    import torch

    batch = next(iter(loader(framework="torch")))
    for moved in (batch.to(torch.float16), batch.to("cpu", torch.float16)):
        assert moved.images.dtype == torch.float16 and moved.labels.dtype == torch.int64
        assert moved.ids.tolist() == batch.ids.tolist() and moved.paths() == batch.paths()
    assert batch.to("cpu") is batch and batch.to(torch.float32) is batch
    # What was copied is the framework's own.
    own = batch.to("cpu", copy=True)
    assert own.torch()[0] is own.images and (own.numpy()[0] == batch.numpy()[0]).all()
    own.record_stream(7)
    with pytest.raises(RuntimeError, match="take them from batch.images"):
        own.jax()
    rows = next(iter(loader(framework="torch", recipe="full", batch_size=4)))
    assert rows.to("cpu") is rows and rows.to(torch.float32).images[0].dtype == torch.float32
    with pytest.raises(TypeError, match="framework='torch'"):
        next(iter(loader())).to("cpu")


def test_numpy_has_bfloat16_by_ml_dtypes_alone(
    loader: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("ml_dtypes")
    recipe = no_normalize()
    wide = next(iter(loader(recipe=recipe, dtype="float32"))).images
    narrow = next(iter(loader(recipe=recipe, dtype="bfloat16"))).images
    assert narrow.dtype.name == "bfloat16" and np.abs(narrow.astype("f4") - wide).max() < 0.004
    monkeypatch.setattr("featherload._loader._has", lambda _: False)
    with pytest.raises(featherload.ConfigError, match="ml_dtypes"):
        loader(recipe=recipe, dtype="bfloat16")


def no_normalize() -> dict[str, Any]:
    return {
        "ops": [
            {"resize": {"size": [32, 48]}},
            {"cast": {"dtype": "u8"}},
            {"layout": {"layout": "nchw"}},
        ]
    }


def test_jax_takes_batches(loader: Make) -> None:
    need("jax")
    import jax

    numpy = loader()
    for (images, labels), (wanted, of) in zip(loader(framework="jax"), numpy, strict=True):
        assert isinstance(images, jax.Array) and images.dtype == "float32"
        assert (np.asarray(images) == wanted).all() and (np.asarray(labels) == of).all()


def test_dlpack_in_both_forms(loader: Make) -> None:
    tensor = next(iter(loader()))._of_loader.images()
    assert tensor is not None and tensor.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(tensor.__dlpack__(max_version=(1, 1)))
    assert '"dltensor"' in repr(tensor.__dlpack__())
    # Not taken: it goes with the capsule.
    with pytest.raises(BufferError):
        tensor.__dlpack__(copy=True)
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="no stream"):
        tensor.__dlpack__(stream=1)
    with pytest.raises(AttributeError):
        tensor.__cuda_array_interface__  # noqa: B018
    array = np.from_dlpack(tensor)
    assert array.flags.writeable and array.shape == tensor.shape
    view = memoryview(tensor)  # type: ignore[arg-type]
    assert view.format == "f" and view.strides == array.strides and view.c_contiguous

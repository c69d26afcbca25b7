"""A function on whole batches: ``then=``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import need

import featherload

Make = Callable[..., featherload.Loader]
ROWS: dict[str, Any] = {"recipe": "eval224", "shuffle": False, "batch_size": 8}


def test_batches_go_through_the_function(loader: Make) -> None:
    plain = [np.array(images) for images, _ in loader(**ROWS)]
    calls = []

    def halves(images: Any) -> Any:
        calls.append(images.shape)
        return images[:, :, ::2, ::2] * 0.5

    changed = loader(then=halves, **ROWS)
    for before, batch in zip(plain, changed, strict=True):
        np.testing.assert_array_equal(batch.images, before[:, :, ::2, ::2] * 0.5)
        # Labels, ids and status are those of the batch.
        assert len(batch.labels) == len(batch.ids) == len(batch.status) == len(before)
    assert calls == [images.shape for images in plain]


def test_what_is_held_takes_no_memory_of_the_loader(loader: Make) -> None:
    """Arrays of the function's own: the slots go back, and no batch is copied."""
    many = loader(then=lambda images: images + 1, depth=2, **{**ROWS, "batch_size": 2})
    held = list(many)
    assert len(held) > 4 and not many._warned


def test_tensors_and_views(loader: Make) -> None:
    need("torch")
    import torch

    plain = [images.clone() for images, _ in loader(framework="torch", **ROWS)]
    flipped = loader(framework="torch", then=lambda images: images.flip(1), **ROWS)
    # These use the memory of the batch.
    views = loader(framework="torch", then=lambda images: images[:, :1], **ROWS)
    shifted = loader(framework="torch", then=lambda images: images.add_(1), **ROWS)
    for before, a, b, c in zip(plain, flipped, views, shifted, strict=True):
        assert torch.equal(a.images, before.flip(1))
        assert torch.equal(b.images, before[:, :1])
        assert torch.equal(c.images, before + 1)


def test_after_an_error_the_batch_comes_again(loader: Make) -> None:
    fails = [True]

    def once(images: Any) -> Any:
        if fails.pop() if fails else False:
            raise RuntimeError("mine")
        return images * 2

    one = loader(then=once, **ROWS)
    epoch = iter(one)
    with pytest.raises(RuntimeError, match="mine"):
        next(epoch)
    batch = next(epoch)
    assert batch.number == 0 and batch.ids[0] == 0


@pytest.mark.parametrize(
    ("then", "why"),
    [
        (3, "then is a int"),
        (lambda images: None, "returned a NoneType"),
        (lambda images: images[:3], "returned 3 rows for 8"),
    ],
)
def test_what_it_cannot_be_is_named(loader: Make, then: Any, why: str) -> None:
    with pytest.raises(featherload.ConfigError, match=why) as refused:
        next(iter(loader(then=then, **ROWS)))
    assert refused.value.option == "then"


def test_the_drop_in_takes_it(photos: Path) -> None:
    need("torchvision")
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2

    from featherload.torch import DataLoader

    folder = ImageFolder(str(photos), v2.Compose([v2.Resize((32, 32)), v2.PILToTensor()]))
    with DataLoader(folder, batch_size=8, then=lambda images: images.float().mean(1)) as one:
        images, labels = next(iter(one))
    assert images.shape == (8, 32, 32) and len(labels) == 8

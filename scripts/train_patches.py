#!/usr/bin/env python3
"""Images a second of a training step on a GPU, with patches of three sources.

    train_patches.py PHOTOS WORKERS...

Trains the vision tower of Qwen2-VL (32 layers, width 1,280, images of up to 200,704 pixels, batches of
16) and SigLIP 2 (base, 256 patches, batches of 128), with random weights in bfloat16. Sources: one
batch that stays on the GPU, `featherload.Loader`, and the image processor in torch's DataLoader with
pinned memory. PHOTOS is a folder, and an epoch lists its files several times. Each run is a process
of its own. Needs featherload, torch with a GPU, transformers and torchvision.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from compare_patches import files, processed, processors
from turns import measure, on_one_thread

SECONDS = 10.0
WARM_UP = 8
ROWS = {"Qwen2-VL, 200,704 pixels": 16, "SigLIP 2, 256": 128}


def model_of(name: str) -> Callable[[dict[str, Any]], Any]:
    """The loss of a batch."""
    import torch

    if name.startswith("Qwen"):
        from transformers.models.qwen2_vl.configuration_qwen2_vl import (
            Qwen2VLVisionConfig,
        )
        from transformers.models.qwen2_vl.modeling_qwen2_vl import (
            Qwen2VisionTransformerPretrainedModel,
        )

        config = Qwen2VLVisionConfig(
            depth=32, embed_dim=1280, num_heads=16, hidden_size=3584
        )
        config._attn_implementation = "sdpa"
        tower: Any = Qwen2VisionTransformerPretrainedModel(config)
    else:
        from transformers import Siglip2VisionConfig, Siglip2VisionModel

        tower = Siglip2VisionModel(Siglip2VisionConfig(attn_implementation="sdpa"))
    tower = tower.to("cuda", torch.bfloat16).train()
    optimizer = torch.optim.AdamW(tower.parameters(), 1e-5, fused=True)

    def step(inputs: dict[str, Any]) -> None:
        if "image_grid_thw" in inputs:
            out = tower(inputs["pixel_values"], grid_thw=inputs["image_grid_thw"])
        else:
            out = tower(
                inputs["pixel_values"],
                pixel_attention_mask=inputs["pixel_attention_mask"],
                spatial_shapes=inputs["spatial_shapes"],
            )
        out = (
            getattr(out, "pooler_output", None)
            if hasattr(out, "pooler_output")
            else out
        )
        out = out if isinstance(out, torch.Tensor) else out[0]
        out.float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def on_gpu(inputs: dict[str, Any]) -> dict[str, Any]:
    import torch

    moved = {key: value.to("cuda", non_blocking=True) for key, value in inputs.items()}
    return {**moved, "pixel_values": moved["pixel_values"].to(torch.bfloat16)}


def with_recipe(
    paths: list[Path], processor: Any, rows: int, workers: int
) -> Iterator[Any]:
    import featherload

    loader = featherload.Loader(
        paths,
        processor,
        batch_size=rows,
        framework="torch",
        dtype="bf16",
        num_workers=workers,
        drop_last=True,
        depth=6,
    )
    while True:
        for batch in loader:
            yield on_gpu(batch.patches.inputs())


def with_processor(
    paths: list[Path], processor: Any, rows: int, workers: int
) -> Iterator[Any]:
    import torch

    data, collate = processed(paths, processor)
    loader = torch.utils.data.DataLoader(
        data,
        rows,
        shuffle=True,
        num_workers=workers,
        collate_fn=collate,
        drop_last=True,
        pin_memory=True,
        persistent_workers=True,
    )
    while True:
        for batch in loader:
            yield on_gpu(batch)


def synthetic(
    paths: list[Path], processor: Any, rows: int, workers: int
) -> Iterator[Any]:
    inputs = next(with_recipe(paths, processor, rows, 2))
    while True:
        yield inputs


SIDES = {
    "on the GPU": synthetic,
    "featherload": with_recipe,
    "DataLoader": with_processor,
}


def run(side: str, name: str, photos: Path, workers: int, times: Any) -> None:
    import torch

    on_one_thread()
    paths = files(photos) * 40
    rows = ROWS[name]
    batches = SIDES[side](paths, processors()[name], rows, workers)
    # Workers start before the model is on the GPU.
    first = next(batches)
    step = model_of(name)
    step(first)
    for _ in range(WARM_UP):
        step(next(batches))
    torch.cuda.synchronize()
    times.send("begins")
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        step(next(batches))
        torch.cuda.synchronize()
        steps += 1
    times.send(steps * rows / (time.perf_counter() - began))


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    photos = Path(sys.argv[1])
    print("| model | workers | batches from | images/s | PSS, MiB |")
    print("|---|---|---|---|---|")
    for name in ROWS:
        for workers in [int(count) for count in sys.argv[2:]]:
            for side in SIDES:
                rate, most = measure(run, side, name, photos, workers)
                mib = most / 2**20
                print(
                    f"| {name} | {workers} | {side} | {rate:.1f} | {mib:.0f} |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())

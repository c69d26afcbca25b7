"""Makes tests/goldens/resizes.tar: images of bytes that Pillow and torchvision resized.

    resizes.py OUT

OUT/cases.json   `filter` (bilinear, bicubic or lanczos of Pillow; tensor_bilinear or
                 tensor_bicubic: torchvision's with antialias, of a tensor), height and width before
                 and after, and the first byte of the result in the next file.
OUT/results.bin  The results, three interleaved channels.

Bytes of images follow from the number of the case (`noise`), so they are not written. Half of the
images have the levels 0 and 255 alone: their values leave the range of a byte between the passes,
and the order of the passes shows. Needs Pillow 13 and torchvision, on a CPU with AVX2.
"""

import json
import random
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional

CASES = 400
FILTERS = ["bilinear", "bicubic", "lanczos", "tensor_bilinear", "tensor_bicubic"]


def noise(count: int, seed: int) -> bytes:
    """Bytes of a xorshift generator. Even seeds give the levels 0 and 255 alone."""
    state = seed * 0x9E3779B97F4A7C15 % 2**64 | 1
    values = bytearray()
    for _ in range(count):
        state ^= state << 13 & 2**64 - 1
        state ^= state >> 7
        state ^= state << 17 & 2**64 - 1
        level = state >> 56
        values.append(level if seed % 2 else 255 * (level >> 7))
    return bytes(values)


def resized(pixels: np.ndarray, filter: str, height: int, width: int) -> np.ndarray:
    if filter.startswith("tensor"):
        tensor = torch.from_numpy(pixels.copy()).permute(2, 0, 1)
        mode = InterpolationMode(filter.removeprefix("tensor_"))
        made = functional.resize(tensor, [height, width], mode, antialias=True)
        return made.permute(1, 2, 0).contiguous().numpy()
    filters = Image.Resampling[filter.upper()]
    return np.asarray(Image.fromarray(pixels).resize((width, height), filters))


def main() -> None:
    out = Path(sys.argv[1])
    draw = random.Random(1)
    cases = []
    with (out / "results.bin").open("wb") as results:
        for number in range(CASES):
            filter = FILTERS[number // 2 % len(FILTERS)]
            height, width = draw.randint(1, 60), draw.randint(1, 60)
            size = [draw.randint(1, 24), draw.randint(1, 24)]
            if number % 7 == 0:  # about the same size, where weights are largest
                size = [max(1, side + draw.randint(-3, 3)) for side in (height, width)]
            pixels = np.frombuffer(noise(3 * height * width, number), np.uint8)
            made = resized(pixels.reshape(height, width, 3), filter, *size)
            cases.append(
                {"filter": filter, "from": [height, width], "to": size, "at": results.tell()}
            )
            results.write(made.tobytes())
    (out / "cases.json").write_text(json.dumps(cases, indent=0))


main()

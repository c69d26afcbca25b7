"""Makes tests/goldens/patches.tar: how image processors of transformers cut images into patches.

    patches.py OUT

OUT/sizes.json   a list of rules.
OUT/sizes.bin    heights and widths of 800 images. After that, for each rule, the rows and columns
                 of the patches of each image. They are 0 if the processor refuses the image. u16,
                 little-endian.
OUT/orders.json  a list of rules with a grid. `at` is the first value of the case in orders.bin.
OUT/orders.bin   for each case and each value of the row `[patches, values]`: the index of its
                 source in the resized image (rows of pixels, three channels). u16, little-endian.
OUT/pixels.json  `images` with their sizes, places in pixels.bin and a list of `rows`. A row has its
                 rule, grid, filter, and a place for each backend. `backends_differ` is the largest
                 difference of their levels, and the number of levels that differ. `floats` has the
                 mean and the deviation of each style.
OUT/pixels.bin   images as rows of pixels with three channels. Rows of finished images as levels
                 (u8), in the order of the processor, with one copy of each frame only.
OUT/STYLE.f32    the finished value of each level: [256, 3], f32, little-endian. By the torchvision
                 backend. Those of the Pillow backend differ from it by at most 3e-7.

The rule of a case has the fields of `PatchRule`. Runs Qwen2VLImageProcessor and
Siglip2ImageProcessor of transformers 5.24.0, and both with the suffix `Pil`. Of
Pix2StructImageProcessor it has the grids alone. Qwen3-VL has no class
of its own: it uses that of Qwen2-VL with other numbers.

The script checks that each finished value is that of its level, that the copies of a frame are
equal, and that SigLIP2 pads with zeros. Both backends resize with antialias. torchvision resizes u8
as integers, first along rows and then along columns. For bilinear it needs a CPU with AVX2 or of
Arm: elsewhere it uses floats. Pillow 13 chooses which of the two passes is first.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers.image_utils import SizeDict
from transformers.models.pix2struct.image_processing_pix2struct import (
    Pix2StructImageProcessor,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import (
    Qwen2VLImageProcessorPil,
)
from transformers.models.qwen2_vl.image_processing_qwen2_vl import (
    Qwen2VLImageProcessor,
    smart_resize,
)
from transformers.models.siglip2.image_processing_pil_siglip2 import (
    Siglip2ImageProcessorPil,
)
from transformers.models.siglip2.image_processing_siglip2 import (
    Siglip2ImageProcessor,
    get_image_size_for_max_num_patches,
)

Rule = dict[str, Any]
Size = tuple[int, int]

CLIP = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}


def qwen(patch: int, least: int, most: int, merge: int = 2, temporal: int = 2) -> Rule:
    rule = {
        "style": "qwen",
        "patch_size": patch,
        "merge_size": merge,
        "temporal_patch_size": temporal,
    }
    return rule | {"min_pixels": least, "max_pixels": most, "max_num_patches": 0}


def siglip2(patch: int, most: int) -> Rule:
    rule = {
        "style": "siglip2",
        "patch_size": patch,
        "merge_size": 1,
        "temporal_patch_size": 1,
    }
    return rule | {"min_pixels": 0, "max_pixels": 0, "max_num_patches": most}


def grid_of(rule: Rule, size: Size) -> list[int] | None:
    """Rows and columns of the patches of an image, by the function of the processor."""
    patch = rule["patch_size"]
    if rule["style"] == "pix2struct":
        return pix2struct_grid(patch, rule["max_num_patches"], size)
    if rule["style"] == "siglip2":
        resized = get_image_size_for_max_num_patches(
            *size, patch, rule["max_num_patches"]
        )
    else:
        try:
            factor = patch * rule["merge_size"]
            resized = smart_resize(
                *size, factor, rule["min_pixels"], rule["max_pixels"]
            )
        except ValueError:
            return None
    return [side // patch for side in resized]


def pix2struct_grid(patch: int, most: int, size: Size) -> list[int]:
    """The grid, from the numbers that the processor gives the last patch of an image. Images have
    one channel and the stride 0, so that large ones take no memory, and are not resized."""
    found: list[int] = []
    processor = Pix2StructImageProcessor()

    def resize(image: torch.Tensor, size: Any, **_: Any) -> torch.Tensor:
        found[:] = [size.height // patch, size.width // patch]
        return torch.zeros(1, 1, size.height, size.width)

    processor.resize = resize
    image = torch.zeros(1, 1, 1, 1).expand(1, 1, *size)
    patches = SizeDict(height=patch, width=patch)
    processor.extract_flattened_patches(image, most, patches)
    return found


def sizes(draw: random.Random) -> list[Size]:
    """Heights and widths: small, of cameras and screens, near halves of blocks, extreme, random."""
    made = [
        (1024, 1024),
        (1080, 1920),
        (3024, 4032),
        (4032, 3024),
        (512, 512),
        (768, 1344),
    ]
    made += [
        (333, 500),
        (500, 375),
        (375, 500),
        (480, 640),
        (427, 640),
        (2160, 3840),
        (8000, 6000),
    ]
    made += [
        (224, 224),
        (256, 256),
        (336, 336),
        (384, 384),
        (448, 448),
        (4000, 6000),
        (720, 1280),
    ]
    made += [
        (1, 1),
        (1, 2),
        (2, 1),
        (1, 3),
        (3, 3),
        (5, 7),
        (7, 5),
        (13, 29),
        (15, 17),
        (27, 29),
    ]
    # Ratios near 200.
    made += [
        (1, 199),
        (1, 200),
        (1, 201),
        (200, 1),
        (201, 1),
        (2, 400),
        (2, 401),
        (401, 2),
    ]
    made += [(3, 600), (3, 601), (100, 20000), (100, 20001), (20001, 100), (65535, 328)]
    made += [(327, 65535)]
    made += [
        (10, 2000),
        (10, 2001),
        (50, 9999),
        (50, 10001),
        (7, 1399),
        (7, 1400),
        (7, 1401),
    ]
    # Halves of blocks, which Python rounds to the even number.
    for block in (28, 32):
        for _ in range(24):
            height = block * draw.randint(0, 12) + block // 2
            width = block * draw.randint(0, 40) + block // 2
            made += [
                (height, width),
                (height + draw.randint(-1, 1), width + draw.randint(-1, 1)),
            ]
    # Whole blocks.
    for block in (14, 16, 28, 32):
        for _ in range(14):
            made.append((block * draw.randint(1, 40), block * draw.randint(1, 40)))
    # All ratios at all areas.
    kinds = [(0, 5, 2, 80), (4, 9, 3, 120), (8, 13, 1.5, 150), (2, 12, 7.6, 110)]
    for least, most, ratio, count in kinds:
        for _ in range(count):
            side, stretch = (
                2 ** draw.uniform(least, most),
                2 ** (draw.uniform(-ratio, ratio) / 2),
            )
            made.append((max(1, int(side / stretch)), max(1, int(side * stretch))))
    # Squares, and images of `min_pixels` and `max_pixels`.
    for side in (
        55,
        56,
        57,
        111,
        112,
        113,
        1001,
        1002,
        1003,
        255,
        257,
        4095,
        4096,
        4097,
        65535,
    ):
        made.append((side, side))
    while len(made) < 800:
        made.append((draw.randint(1, 3000), draw.randint(1, 3000)))
    assert len(made) == 800
    return made


def write_sizes(out: Path) -> None:
    rules = [
        qwen(14, 56 * 56, 28 * 28 * 1280),
        qwen(14, 3136, 12845056),
        qwen(16, 65536, 16777216),
        qwen(14, 4 * 784, 16 * 784),
        qwen(16, 65536, 65536),
        qwen(4, 1, 100, merge=1, temporal=1),
        qwen(16, 2500, 90000, merge=3),
        siglip2(16, 256),
        siglip2(16, 1024),
        siglip2(14, 7),
        siglip2(16, 2048) | {"style": "pix2struct"},
        siglip2(8, 7) | {"style": "pix2struct"},
    ]
    images = sizes(random.Random(7))
    grids = [[grid_of(rule, size) or [0, 0] for size in images] for rule in rules]
    (out / "sizes.json").write_text(lines(rules))
    (out / "sizes.bin").write_bytes(np.array([images, *grids]).astype("<u2").tobytes())


def processor(rule: Rule, backend: str, **more: Any) -> Any:
    """A processor with the numbers of a rule."""
    more["patch_size"] = rule["patch_size"]
    if rule["style"] == "siglip2":
        kind = {"torchvision": Siglip2ImageProcessor, "pil": Siglip2ImageProcessorPil}[
            backend
        ]
        return kind(max_num_patches=rule["max_num_patches"], **more)
    kind = {"torchvision": Qwen2VLImageProcessor, "pil": Qwen2VLImageProcessorPil}[
        backend
    ]
    more |= {name: rule[name] for name in ("merge_size", "temporal_patch_size")}
    size = {"shortest_edge": rule["min_pixels"], "longest_edge": rule["max_pixels"]}
    return kind(size=size, **more)


def finished(
    rule: Rule, backend: str, image: np.ndarray, **more: Any
) -> tuple[np.ndarray, list]:
    """The row of an image, without the padding, and its grid."""
    made = processor(rule, backend, **more)(
        images=[image], return_tensors="pt", input_data_format="channels_last"
    )
    if rule["style"] == "qwen":
        return made["pixel_values"].numpy(), made["image_grid_thw"][0, 1:].tolist()
    grid = made["spatial_shapes"][0].tolist()
    patches, row = grid[0] * grid[1], made["pixel_values"][0].numpy()
    mask = made["pixel_attention_mask"][0].numpy()
    assert row.shape[0] == rule["max_num_patches"] == len(mask)
    assert not row[patches:].any() and mask[:patches].all() and not mask[patches:].any()
    return row[:patches], grid


def write_orders(out: Path) -> None:
    cases, values = [], []
    off = {"do_resize": False, "do_rescale": False, "do_normalize": False}
    for rule, grid in [
        (qwen(2, 1, 10**6), [4, 6]),
        (qwen(3, 1, 10**6, merge=1), [2, 5]),
        (qwen(3, 1, 10**6, merge=3, temporal=1), [6, 3]),
        (qwen(4, 1, 10**6, temporal=1), [2, 4]),
        (qwen(7, 1, 10**6), [2, 2]),
        (qwen(2, 1, 10**6, merge=1, temporal=1), [5, 3]),
        (qwen(2, 1, 10**6, temporal=3), [2, 6]),
        (siglip2(2, 30), [5, 6]),
        (siglip2(3, 7), [1, 7]),
        (siglip2(4, 9), [4, 2]),
    ]:
        height, width = (side * rule["patch_size"] for side in grid)
        source = np.arange(height * width * 3, dtype=np.int64).reshape(height, width, 3)
        # One pass for each digit of the index, as levels.
        order = np.zeros(0)
        for backend in ("torchvision", "pil"):
            low, got = finished(rule, backend, (source % 256).astype(np.uint8), **off)
            high, _ = finished(rule, backend, (source // 256).astype(np.uint8), **off)
            assert got == grid
            other = high.astype(np.int64) * 256 + low.astype(np.int64)
            assert backend == "torchvision" or (other == order).all()
            order = other
        cases.append({"rule": rule, "grid": grid, "at": sum(v.size for v in values)})
        values.append(order.reshape(-1).astype("<u2"))
    (out / "orders.json").write_text(lines(cases))
    (out / "orders.bin").write_bytes(np.concatenate(values).tobytes())


def lines(cases: list[Any]) -> str:
    text = ",\n".join(json.dumps(case) for case in cases)
    return f"[\n{text}\n]\n"


def picture(
    draw: np.random.Generator, height: int, width: int, kind: str
) -> np.ndarray:
    if kind == "noise":
        return draw.integers(0, 256, (height, width, 3), dtype=np.uint8)
    y, x = np.mgrid[:height, :width]
    planes = [
        y * 255 / max(1, height - 1),
        x * 255 / max(1, width - 1),
        (y * 37 + x * 11) % 256,
    ]
    if kind == "edges":
        planes = [255 * ((y // 3 + x // 5 + c) % 2) for c in range(3)]
    return np.stack(planes, axis=-1).astype(np.uint8)


def floats(style: str) -> dict[str, Any]:
    return (
        CLIP if style == "qwen" else {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    )


def levels_table(rule: Rule, backend: str) -> np.ndarray:
    """The finished value of each level and channel, from the processor."""
    # A patch for 16 levels each, so that no pixel is resized.
    table = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3, axis=2)
    one = rule | {
        "patch_size": 16,
        "merge_size": 1,
        "temporal_patch_size": 1,
        "max_num_patches": 1,
    }
    row, _ = finished(one, backend, table, do_resize=False, **floats(rule["style"]))
    row = row.reshape(3, 256).T if rule["style"] == "qwen" else row.reshape(256, 3)
    assert row.dtype == np.float32
    return np.ascontiguousarray(row)


def levels(rule: Rule, backend: str, image: np.ndarray) -> tuple[np.ndarray, list]:
    """The row of an image as levels, with one copy of each frame."""
    row, grid = finished(rule, backend, image, **floats(rule["style"]))
    assert row.dtype == np.float32
    side, temporal = rule["patch_size"], rule["temporal_patch_size"]
    table = levels_table(rule, backend)
    shape = (
        (-1, 3, temporal, side * side)
        if rule["style"] == "qwen"
        else (-1, side * side, 3)
    )
    row = row.reshape(shape)
    if rule["style"] == "qwen":
        assert (row == row[:, :, :1]).all()
        row = row[:, :, 0].transpose(0, 2, 1)
    found = np.stack(
        [np.searchsorted(table[:, c], row[..., c]) for c in range(3)], axis=-1
    )
    again = np.stack([table[found[..., c], c] for c in range(3)], axis=-1)
    assert (again == row).all(), "a value is not that of a level"
    if rule["style"] == "qwen":
        found = found.transpose(0, 2, 1)
    return found.astype(np.uint8), grid


def write_pixels(out: Path) -> None:
    draw = np.random.default_rng(11)
    small = qwen(8, 256, 1024)
    images = [
        ((13, 29), "noise", [qwen(4, 256, 400), siglip2(8, 12)]),
        ((25, 45), "noise", [small, siglip2(8, 10)]),
        ((29, 43), "noise", [small, siglip2(8, 8)]),
        # One patch size keeps the size of the image.
        ((14, 28), "slope", [qwen(7, 196, 400), siglip2(14, 4)]),
        ((41, 23), "edges", [small, qwen(16, 1024, 1024)]),
        ((5, 7), "noise", [qwen(4, 64, 400, merge=3), siglip2(4, 20)]),
        ((1, 1), "noise", [qwen(4, 64, 400), siglip2(4, 9)]),
        ((3, 60), "edges", [qwen(4, 64, 400, merge=1), siglip2(8, 9)]),
        ((35, 21), "slope", [qwen(8, 256, 1024, temporal=1), siglip2(8, 6)]),
        ((31, 33), "slope", [small, siglip2(8, 16)]),
        ((9, 50), "noise", [qwen(4, 64, 600), siglip2(4, 32)]),
        ((37, 11), "slope", [qwen(4, 200, 420, merge=1), siglip2(16, 3)]),
    ]
    data, cases = bytearray(), []
    for (height, width), kind, rules in images:
        image = picture(draw, height, width, kind)
        case = {"size": [height, width], "at": len(data), "rows": []}
        data += image.tobytes()
        for rule in rules:
            row = {
                "rule": rule,
                "filter": "bicubic" if rule["style"] == "qwen" else "bilinear",
            }
            both = {}
            for backend in ("torchvision", "pil"):
                both[backend], row["grid"] = levels(rule, backend, image)
                same = backend == "pil" and (both["pil"] == both["torchvision"]).all()
                row[backend] = row["torchvision"] if same else len(data)
                data += b"" if same else both[backend].tobytes()
            apart = np.abs(both["torchvision"].astype(int) - both["pil"])
            row["backends_differ"] = [int(apart.max()), int((apart > 0).sum())]
            assert grid_of(rule, (height, width)) == row["grid"]
            case["rows"].append(row)
        cases.append(case)
    kinds = {"qwen": floats("qwen"), "siglip2": floats("siglip2")}
    text = f'{{"floats": {json.dumps(kinds)},\n"images": {lines(cases)}}}\n'
    (out / "pixels.json").write_text(text)
    (out / "pixels.bin").write_bytes(bytes(data))
    for rule in (qwen(16, 1, 10**6), siglip2(16, 1)):
        table = levels_table(rule, "torchvision")
        assert np.abs(table - levels_table(rule, "pil")).max() < 3e-7
        (out / f"{rule['style']}.f32").write_bytes(table.astype("<f4").tobytes())


def main() -> None:
    torch.set_num_threads(1)
    out = Path(sys.argv[1])
    write_sizes(out)
    write_orders(out)
    write_pixels(out)


if __name__ == "__main__":
    main()

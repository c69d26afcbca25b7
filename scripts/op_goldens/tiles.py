"""Makes tests/goldens/tiles.tar: how image processors of transformers cut images into tiles.

    tiles.py OUT

OUT/sizes.json   a list of rules.
OUT/sizes.bin    heights and widths of 500 images. After that, for each rule and each image: rows and
                 columns of its tiles, height and width of the image in its canvas. u16,
                 little-endian.
OUT/pixels.json  a list of images with their sizes, places in pixels.bin and a list of `rows`. A row
                 has its rule, grid and place.
OUT/pixels.bin   images as rows of pixels with three channels. Rows of tiles as levels, as the
                 processor orders them: [tiles, 3, tile_size, tile_size].

The rule of a case has the fields of the operation `tiles`. Runs GotOcr2ImageProcessor, which InternVL
uses, and LlavaNextImageProcessor of transformers 5.24.0, both with torchvision.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers.image_processing_utils import (
    get_patch_output_size,
    select_best_resolution,
)
from transformers.image_utils import ChannelDimension
from transformers.models.got_ocr2.image_processing_got_ocr2 import (
    GotOcr2ImageProcessor,
    get_optimal_tiled_canvas,
)
from transformers.models.llava_next.image_processing_llava_next import (
    LlavaNextImageProcessor,
)

Rule = dict[str, Any]
Size = tuple[int, int]

LLAVA_NEXT = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]


def internvl(side: int, least: int, most: int) -> Rule:
    return {
        "style": "internvl",
        "tile_size": side,
        "min_tiles": least,
        "max_tiles": most,
    }


def llava_next(side: int, grids: list[list[int]]) -> Rule:
    pinpoints = [[side * rows, side * columns] for rows, columns in grids]
    return {"style": "llava_next", "tile_size": side, "grid_pinpoints": pinpoints}


def canvas_of(rule: Rule, size: Size) -> list[int]:
    """Rows and columns of tiles, and the size of the image in its canvas."""
    side = rule["tile_size"]
    if rule["style"] == "internvl":
        columns, rows = get_optimal_tiled_canvas(
            size, (side, side), rule["min_tiles"], rule["max_tiles"]
        )
        return [rows, columns, rows * side, columns * side]
    height, width = select_best_resolution(size, rule["grid_pinpoints"])
    image = np.empty((3, *size), np.bool_)
    inside = get_patch_output_size(image, (height, width), ChannelDimension.FIRST)
    return [height // side, width // side, *inside]


def sizes(draw: random.Random) -> list[Size]:
    """Heights and widths: of cameras, extreme, with equally good canvases, random."""
    made = [(1080, 1920), (3024, 4032), (333, 500), (480, 640), (2160, 3840)]
    made += [(1, 1), (1, 2), (2, 1), (1, 300), (300, 1), (1, 4000), (4000, 1), (7, 5)]
    made += [(336, 336), (336, 672), (672, 336), (337, 672), (335, 672), (1008, 336)]
    # A ratio that several canvases have, around half of their areas.
    for side in (32, 224, 448):
        for rows, columns in [(1, 1), (2, 2), (3, 3), (2, 4), (4, 2), (2, 6)]:
            for scale in (0.5, 0.5**0.5, 1):
                height, width = int(side * rows * scale), int(side * columns * scale)
                made += [(height, width), (height + 1, width), (height, width + 1)]
    # Ratios between those of two canvases.
    for _ in range(60):
        side = draw.randint(2, 400)
        made.append((side * draw.randint(1, 12) * 2, side * draw.randint(1, 12) * 3))
    while len(made) < 500:
        area, ratio = 2 ** draw.uniform(2, 11), 2 ** draw.uniform(-2, 2)
        made.append((max(1, int(area * ratio)), max(1, int(area / ratio))))
    assert len(made) == 500
    return made


def write_sizes(out: Path) -> None:
    many = [[rows, columns] for rows in range(1, 7) for columns in range(1, 7)]
    rules = [
        internvl(448, 1, 12),
        internvl(448, 1, 1),
        internvl(224, 2, 6),
        internvl(32, 5, 7),
        internvl(448, 1, 40),
        llava_next(336, [[1, 2], [2, 1], [2, 2], [3, 1], [1, 3]]),
        llava_next(384, many),
        llava_next(224, [[2, 2]]),
    ]
    assert rules[5]["grid_pinpoints"] == LLAVA_NEXT
    images = sizes(random.Random(3))
    found = [[canvas_of(rule, size) for size in images] for rule in rules]
    (out / "sizes.json").write_text(lines(rules))
    data = [np.array(part).astype("<u2").tobytes() for part in [images, *found]]
    (out / "sizes.bin").write_bytes(b"".join(data))


def lines(cases: list[Any]) -> str:
    text = ",\n".join(json.dumps(case) for case in cases)
    return f"[\n{text}\n]\n"


def levels(rule: Rule, image: np.ndarray) -> np.ndarray:
    """The tiles of an image as levels."""
    side = rule["tile_size"]
    more = {"do_rescale": False, "do_normalize": False}
    size = {"height": side, "width": side}
    if rule["style"] == "internvl":
        processor = GotOcr2ImageProcessor(
            size=size,
            crop_to_patches=True,
            min_patches=rule["min_tiles"],
            max_patches=rule["max_tiles"],
            **more,
        )
    else:
        processor = LlavaNextImageProcessor(
            size={"shortest_edge": side},
            crop_size=size,
            image_grid_pinpoints=rule["grid_pinpoints"],
            **more,
        )
    made = processor(
        images=[image], return_tensors="pt", input_data_format="channels_last"
    )
    tiles = made["pixel_values"].numpy()
    tiles = tiles[0] if tiles.ndim == 5 else tiles
    found = tiles.astype(np.uint8)
    assert (found == tiles).all()
    return found


def picture(draw: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Far from 0 and 255, since torchvision also clips between the two passes. Without steep edges:
    it rounds between them, and bicubic weights enlarge that."""
    y, x = np.mgrid[:height, :width]
    down, across = y / max(1, height - 1), x / max(1, width - 1)
    planes = [40 + 160 * down, 200 - 160 * across, 60 + 60 * (down + across)]
    noise = draw.integers(0, 8, (height, width, 3))
    return (np.stack(planes, axis=-1) + noise).astype(np.uint8)


def write_pixels(out: Path) -> None:
    draw = np.random.default_rng(5)
    usual = [[1, 2], [2, 1], [2, 2], [3, 1], [1, 3]]
    images = [
        ((31, 45), [internvl(16, 1, 6), llava_next(16, usual)]),
        ((45, 31), [internvl(16, 1, 6), llava_next(12, usual)]),
        ((40, 40), [internvl(16, 1, 1), internvl(16, 4, 4), llava_next(20, usual)]),
        ((9, 70), [internvl(16, 1, 12), llava_next(16, usual)]),
        ((70, 9), [internvl(16, 1, 12), llava_next(16, usual)]),
        ((16, 16), [internvl(16, 1, 4), llava_next(16, usual)]),
        ((1, 1), [internvl(8, 1, 4), llava_next(8, usual)]),
        # More than one run of 64 pixels for a line of a tile.
        ((90, 210), [internvl(75, 1, 3), llava_next(70, usual)]),
        ((33, 50), [llava_next(16, [[4, 4], [2, 3], [3, 2]])]),
    ]
    data, cases = bytearray(), []
    for (height, width), rules in images:
        image = picture(draw, height, width)
        case: dict[str, Any] = {"size": [height, width], "at": len(data), "rows": []}
        data += image.tobytes()
        for rule in rules:
            tiles = levels(rule, image)
            grid = canvas_of(rule, (height, width))[:2]
            row = {"rule": rule, "grid": grid, "tiles": len(tiles), "at": len(data)}
            case["rows"].append(row)
            data += tiles.tobytes()
        cases.append(case)
    (out / "pixels.json").write_text(lines(cases))
    (out / "pixels.bin").write_bytes(bytes(data))


def main() -> None:
    torch.set_num_threads(1)
    out = Path(sys.argv[1])
    write_sizes(out)
    write_pixels(out)


if __name__ == "__main__":
    main()

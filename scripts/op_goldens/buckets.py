"""Makes tests/goldens/buckets.tar: the buckets that trainers choose for sizes of images.

    buckets.py OUT [TIMES]

OUT/cases.json  for each style a list of rules with their cases. A case has height and width of an
                image, of its bucket, and of the resized image.

Runs the functions of each trainer, taken from its source: `SD_SCRIPTS` (library/model_util.py and
library/train_util.py of kohya-ss/sd-scripts at 48d368fa), `DIFFUSERS` (src/diffusers/training_utils.py
of huggingface/diffusers at 58eb52c0) and `AI_TOOLKIT` (toolkit/buckets.py of ostris/ai-toolkit at
27a03a91) name the folders of the sources. Only the functions and classes that are named below are
run, because the modules import whole trainers. What is written down here from these projects is how
the size of the resized image follows: `train_transform` of diffusers' DreamBooth scripts, and
`setup_buckets` of ai-toolkit.

`TIMES` makes as many times the cases, for a comparison that is not kept. Needs NumPy.
"""

import ast
import json
import math
import os
import random
import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, TypedDict

import numpy as np

OUT = Path(sys.argv[1])
TIMES = int(sys.argv[2]) if len(sys.argv) > 2 else 1


def taken(path: Path, names: list[str], known: dict[str, Any]) -> dict[str, Any]:
    """Runs the definitions with these names of a file."""
    tree = ast.parse(path.read_text())
    wanted = []
    for node in tree.body:
        name = getattr(node, "name", None)
        if isinstance(node, ast.Assign):
            name = getattr(node.targets[0], "id", None)
        if name in names:
            wanted.append(node)
    scope = dict(known)
    exec(compile(ast.Module(wanted, []), str(path), "exec"), scope)
    return scope


COMMON = {
    "math": math,
    "np": np,
    "random": random,
    "Dict": Dict,
    "List": List,
    "NamedTuple": NamedTuple,
    "Optional": Optional,
    "Tuple": Tuple,
    "TypedDict": TypedDict,
}


def sizes(draw: random.Random, count: int) -> list[tuple[int, int]]:
    """Heights and widths: those of cameras and screens, random ones, and extreme ratios."""
    usual = [(1024, 1024), (1080, 1920), (3024, 4032), (4032, 3024), (512, 512), (768, 1344)]
    usual += [(333, 500), (500, 375), (64, 64), (100, 4000), (1, 1), (2160, 3840), (1152, 896)]
    made = []
    for _ in range(count):
        side = int(2 ** draw.uniform(5, 12.5))
        ratio = 2 ** draw.uniform(-2.2, 2.2)
        made.append((max(1, int(side / math.sqrt(ratio))), max(1, int(side * math.sqrt(ratio)))))
    return usual + made


def sd_scripts() -> list[dict[str, Any]]:
    folder = Path(os.environ["SD_SCRIPTS"]) / "library"
    util = taken(folder / "model_util.py", ["make_bucket_resolutions"], COMMON)

    class Util:
        make_bucket_resolutions = staticmethod(util["make_bucket_resolutions"])

    train = taken(folder / "train_util.py", ["BucketManager"], {**COMMON, "model_util": Util})
    rules = []
    for number, (area, step, sides, upscale) in enumerate(
        [
            ((512, 512), 64, (256, 1024), True),
            ((1024, 1024), 64, (256, 2048), True),
            ((1024, 1024), 32, (512, 1536), True),
            ((768, 512), 64, (256, 1024), True),
            ((1024, 1024), 64, (256, 1024), False),
            ((512, 512), 32, (256, 1024), False),
        ]
    ):
        manager = train["BucketManager"](not upscale, area, *sides, step)
        if upscale:
            manager.make_buckets()
        cases = []
        for height, width in sizes(random.Random(number), 60 * TIMES):
            if not upscale and min(height, width) < step * 5:
                # A side would be 0, which divides.
                continue
            (w, h), (rw, rh), _ = manager.select_bucket(width, height)
            cases.append([[height, width], [h, w], [rh, rw]])
        rule = {"area": area[0] * area[1], "step": step, "sides": sides, "upscale": upscale}
        rules.append({"rule": {**rule, "style": "sd-scripts"}, "cases": cases})
    return rules


def diffusers() -> list[dict[str, Any]]:
    names = ["find_nearest_bucket", "generate_aspect_ratio_buckets"]
    names.append("_DEFAULT_BUCKET_ASPECT_RATIOS")
    path = Path(os.environ["DIFFUSERS"]) / "src/diffusers/training_utils.py"
    util = taken(path, names, COMMON)
    rules = []
    for number, (side, step) in enumerate([(1024, 16), (512, 16), (768, 8), (1024, 64)]):
        cases = []
        for height, width in sizes(random.Random(100 + number), 60 * TIMES):
            resolution = min(side, round((height * width) ** 0.5))
            ladder = util["generate_aspect_ratio_buckets"](resolution, divisibility=step)
            h, w = ladder[util["find_nearest_bucket"](height, width, ladder)]
            scale = max(h / height, w / width)
            resized = [round(height * scale), round(width * scale)]
            cases.append([[height, width], [h, w], resized])
        rule = {"area": side * side, "step": step, "style": "diffusers"}
        rules.append({"rule": rule, "cases": cases})
    return rules


def ai_toolkit() -> list[dict[str, Any]]:
    names = ["BucketResolution", "get_bucket_for_image_size"]
    util = taken(Path(os.environ["AI_TOOLKIT"]) / "toolkit/buckets.py", names, COMMON)
    rules = []
    for number, (side, step) in enumerate([(512, 8), (1024, 8), (1024, 64), (768, 32)]):
        cases = []
        for height, width in sizes(random.Random(200 + number), 60 * TIMES):
            fit = util["get_bucket_for_image_size"](width, height, side, step)
            w, h = fit["width"], fit["height"]
            factor = max(w / width, h / height)
            resized = [math.ceil(height * factor), math.ceil(width * factor)]
            cases.append([[height, width], [h, w], resized])
        rule = {"area": side * side, "step": step, "style": "ai-toolkit"}
        rules.append({"rule": rule, "cases": cases})
    return rules


rules = sd_scripts() + diffusers() + ai_toolkit()
text = ",\n".join(json.dumps(one) for one in rules)
(OUT / "cases.json").write_text(f"[\n{text}\n]\n")

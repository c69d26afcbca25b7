"""Makes tests/goldens/buckets.tar: the buckets that trainers choose for sizes of images.

    buckets.py OUT [TIMES]

OUT/cases.json  for each style a list of rules with their cases. A case has height and width of an
                image, of its bucket, and of the resized image.

Runs the functions of each trainer, taken from its source. These name the folders of the sources:

    SD_SCRIPTS    kohya-ss/sd-scripts at 48d368fa
    DIFFUSERS     huggingface/diffusers at 58eb52c0
    AI_TOOLKIT    ostris/ai-toolkit at 27a03a91
    SIMPLE_TUNER  bghira/SimpleTuner at bc8e6ab7

Only the functions and classes that are named below are run, because the modules import whole
trainers. What is written down here from these projects is how the size of the resized image comes:
`train_transform` of diffusers' DreamBooth scripts, and `setup_buckets` of ai-toolkit.

SimpleTuner keeps one size for each rounded ratio of a bucket: that of the first image that it saw.
Here each rule begins with images of the ratios 0.01, 0.02 and so on, in this order.

`TIMES` makes as many times the cases, for a comparison that is not kept. Needs NumPy and Pillow.
"""

import ast
import json
import logging
import math
import os
import random
import sys
from numbers import Real
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, TypedDict, Union

import numpy as np
from PIL import Image

TIMES = int(sys.argv[2]) if __name__ == "__main__" and len(sys.argv) > 2 else 1


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

CROPPINGS = ["BaseCropping", "CornerCropping", "CenterCropping", "RandomCropping", "FaceCropping"]
CROPPINGS.append("crop_handlers")


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
        rule = {"area": area[0] * area[1], "step": step, "upscale": upscale}
        if upscale:
            rule["sides"] = sides
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


class Ratios:
    """SimpleTuner's global state: one size for each rounded ratio of a bucket."""

    def __init__(self, step: int):
        self.args = SimpleNamespace(aspect_bucket_alignment=step)
        self.known: dict[float, tuple[int, int]] = {}
        self.config: dict[str, Any] = {}

    def get_args(self) -> SimpleNamespace:
        return self.args

    def get_resolution_by_aspect(
        self, dataloader_resolution: float, aspect: float
    ) -> tuple[int, int] | None:
        return self.known.get(aspect)

    def set_resolution_by_aspect(
        self, dataloader_resolution: float, aspect: float, resolution: tuple[int, int]
    ) -> None:
        self.known[aspect] = resolution

    def get_data_backend_config(self, _name: str) -> dict[str, Any]:
        return self.config

    def get_metadata_by_filepath(self, _path: str, _name: str) -> None:
        return None

    def get_model(self) -> None:
        return None

    def get_webhook_handler(self) -> None:
        return None


def simple_tuner_code(ratios: Ratios, known: dict[str, Any]) -> dict[str, Any]:
    """`TrainingSample` and the code that it needs. `known`: the libraries that it uses."""
    folder = Path(os.environ["SIMPLE_TUNER"]) / "simpletuner/helpers"
    code = {
        **COMMON,
        "logging": logging,
        "logger": logging.getLogger(),
        "os": os,
        "Image": Image,
        "Real": Real,
    }
    code |= {"sqrt": math.sqrt, "Union": Union, "Any": Any, "StateTracker": ratios, **known}
    for path, names in [
        ("multiaspect/image.py", ["MultiaspectImage", "resize_helpers"]),
        ("image_manipulation/cropping.py", CROPPINGS),
        ("image_manipulation/batched_training_samples.py", ["BatchedTrainingSamples"]),
        ("image_manipulation/training_sample.py", ["TrainingSample", "PreparedSample"]),
    ]:
        scope = taken(folder / path, names, code)
        code |= {name: scope[name] for name in names}
    return code


def simple_tuner_sample(side: int, step: int, known: dict[str, Any]) -> Any:
    """The class of samples for a rule, with a row for each ratio to 50."""
    ratios = Ratios(step)
    ratios.config = {"crop": True, "crop_aspect": "preserve", "crop_style": "center"}
    ratios.config |= {"resolution_type": "area", "resolution": side * side / 1000**2}
    sample = simple_tuner_code(ratios, known)["TrainingSample"]
    for hundredths in range(1, 5001):
        # An exact square leaves no size behind.
        size = (10 * hundredths + (hundredths == 100), 1000)
        sample(None, "images", {"original_size": size}).calculate_target_size()
    return sample


def simple_tuner() -> list[dict[str, Any]]:
    rules = []
    for number, (side, step) in enumerate([(1024, 64), (512, 64), (1024, 8), (768, 32), (500, 8)]):
        sample = simple_tuner_sample(side, step, {})
        cases = []
        for height, width in sizes(random.Random(300 + number), 60 * TIMES):
            one = sample(None, "images", {"original_size": (width, height)})
            row, resized, _ = one.calculate_target_size()
            cases.append([[height, width], row[::-1], resized[::-1]])
        rule = {"area": side * side, "step": step, "style": "simpletuner"}
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


def main() -> None:
    rules = sd_scripts() + diffusers() + ai_toolkit() + simple_tuner()
    text = ",\n".join(json.dumps(one) for one in rules)
    (Path(sys.argv[1]) / "cases.json").write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    main()

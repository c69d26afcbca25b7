"""Makes tests/goldens/bucket_crops.tar: images that trainers resized and cropped to their buckets.

    bucket_crops.py OUT
    bucket_crops.py --photos PHOTOS OUT [SIDE]

OUT/cases.json  For each style a list of rules with their cases. A case has the name of its image,
                the name of the finished row, height and width of image, row and resized image, and
                top and left of the centre crop. `sdxl` has the numbers that SDXL gets, if the style
                has them: original size, top and left, target size.
OUT/*.png       Images and rows, RGB of 8 bits.

All of this comes from the trainers' own code, taken as in `buckets.py`, which names the sources.
What is written down here: EXIF and RGB before the transform of diffusers, the size of an image in
ai-toolkit, and which of the numbers of SimpleTuner go to SDXL. SimpleTuner decodes and resizes with
trainingsample (0.3.2 here). Also needs OpenCV and torchvision.

SimpleTuner's cache of latents resizes an image twice if several images of a bucket come together:
first to the size of the row, without regard to its ratio, then to the intermediary size. So pixels
depend on the other images. Here each image is alone: one resize and one crop.

`--photos` makes the same of a folder of JPEG photos, for a comparison that is not kept. It takes
the first 1,000 in the order of their paths. The area is that of a square of SIDE (default: 512),
with the step of the style.

OUT/STYLE.jsonl       One line for each photo. `at` is the first byte of its row in the next file,
                      and `crc32` is of the row. Sizes are those that the trainer sees: sd-scripts
                      and SimpleTuner ignore the orientation of EXIF, the others do not.
OUT/pixels-STYLE.bin  The rows, one after the other, three interleaved channels.

The style `simpletuner-pillow` uses Pillow, the decoder that SimpleTuner has for files that
trainingsample does not read. It separates the resize from the decoder: pixels that trainingsample
decodes differ by a few levels from those of Pillow and OpenCV. It uses the orientation of EXIF.
"""

import json
import logging
import os
import sys
import time
import zlib
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, Union

import cv2
import numpy as np
import trainingsample
from buckets import COMMON, simple_tuner_sample, taken
from PIL import Image, ImageDraw
from PIL.ImageOps import exif_transpose
from torchvision import transforms
from torchvision.transforms import functional

MOST_PHOTOS = 1000
LIBRARIES = {
    **COMMON,
    "Any": Any,
    "BytesIO": BytesIO,
    "IO": IO,
    "Image": Image,
    "Union": Union,
    "cv2": cv2,
    "exif_transpose": exif_transpose,
    "logger": logging.getLogger(),
    "os": os,
    "time": time,
    "transforms": transforms,
}

# A case without the names of its files, and its row.
Cropped = tuple[dict[str, Any], np.ndarray]
Trainer = Callable[[Path], Cropped]


def case(
    image: tuple[int, int], resized: tuple[int, int], crop: tuple[int, int], row: np.ndarray
) -> Cropped:
    """Sizes are height and width."""
    made = {"height": image[0], "width": image[1], "row": list(row.shape[:2])}
    made |= {"resized": list(resized), "crop": list(crop)}
    return made, row


def places(height: int, width: int) -> np.ndarray:
    """Each pixel has its own number, so the first one of a crop gives its place."""
    return np.arange(height * width, dtype=np.int32).reshape(height, width)


def sd_scripts(rule: dict[str, Any]) -> Trainer:
    folder = Path(os.environ["SD_SCRIPTS"]) / "library"
    util = taken(folder / "model_util.py", ["make_bucket_resolutions"], COMMON)
    ladder = SimpleNamespace(make_bucket_resolutions=util["make_bucket_resolutions"])
    names = ["pil_resize", "resize_image", "get_pil_interpolation", "get_cv2_interpolation"]
    resizes = taken(folder / "utils.py", names, LIBRARIES)
    names = ["BucketManager", "load_image", "trim_and_resize_if_required"]
    known = {**LIBRARIES, "model_util": ladder, "resize_image": resizes["resize_image"]}
    train = taken(folder / "train_util.py", names, known)
    side = round(rule["area"] ** 0.5)
    # Without effect unless images are enlarged.
    least, most = rule.get("sides", (256, 1024))
    manager = train["BucketManager"](not rule["upscale"], (side, side), least, most, rule["step"])
    if rule["upscale"]:
        manager.make_buckets()
    trim = train["trim_and_resize_if_required"]

    def crop(path: Path) -> Cropped:
        image = train["load_image"](path)
        height, width = image.shape[:2]
        row, resized, _ = manager.select_bucket(width, height)
        pixels, original, ltrb = trim(False, image, row, resized)
        numbers, _, _ = trim(False, places(*resized[::-1]), row, resized)
        top, left = divmod(int(numbers[0, 0]), resized[0])
        made, pixels = case((height, width), resized[::-1], (top, left), pixels)
        made["sdxl"] = [list(original[::-1]), [int(ltrb[1]), int(ltrb[0])], list(row[::-1])]
        return made, pixels

    return crop


def diffusers(rule: dict[str, Any]) -> Trainer:
    folder = Path(os.environ["DIFFUSERS"])
    names = ["find_nearest_bucket", "generate_aspect_ratio_buckets"]
    names.append("_DEFAULT_BUCKET_ASPECT_RATIOS")
    util = taken(folder / "src/diffusers/training_utils.py", names, COMMON)
    # The image as it is before it becomes a tensor.
    seen: list[tuple[int, int]] = []

    def resize(image: Image.Image, size: list[int], **options: Any) -> Image.Image:
        seen.append((size[0], size[1]))
        return functional.resize(image, size, **options)

    steps = SimpleNamespace(resize=resize, center_crop=functional.center_crop)
    steps.to_tensor = lambda image: image
    steps.normalize = lambda image, _mean, _std: image
    known = {**LIBRARIES, **{name: util[name] for name in names}, "TF": steps, "Dataset": object}
    path = folder / "examples/dreambooth/train_dreambooth_lora_flux2.py"
    dataset = taken(path, ["DreamBoothDataset"], known)["DreamBoothDataset"]
    one = dataset.__new__(dataset)
    one.resolution = round(rule["area"] ** 0.5)
    one.bucket_divisibility = rule["step"]
    one.use_aspect_ratio_buckets = True
    one._explicit_buckets = one.bucket_base_resolutions = None

    def crop(path: Path) -> Cropped:
        image = exif_transpose(Image.open(path))
        if image.mode != "RGB":
            image = image.convert("RGB")
        width, height = image.size
        row = one._bucket_for_image(height, width)
        pixels = np.array(one.train_transform(image, row, center_crop=True))
        resized = seen[-1]
        numbers = one.train_transform(Image.fromarray(places(*resized)), row, center_crop=True)
        assert seen[-1] == resized
        top, left = divmod(numbers.getpixel((0, 0)), resized[1])
        return case((height, width), resized, (top, left), pixels)

    return crop


def ai_toolkit(rule: dict[str, Any]) -> Trainer:
    folder = Path(os.environ["AI_TOOLKIT"]) / "toolkit"
    names = ["BucketResolution", "get_bucket_for_image_size"]
    known = {**LIBRARIES, **taken(folder / "buckets.py", names, COMMON), "print_acc": print}
    names = ["Bucket", "BucketsMixin", "ImageProcessingDTOMixin"]
    mixins = taken(folder / "dataloader_mixins.py", names, known)
    config = SimpleNamespace(resolution=round(rule["area"] ** 0.5), bucket_tolerance=rule["step"])
    config.scale, config.buckets = 1.0, True
    config.square_crop = config.random_crop = False

    class Images(mixins["BucketsMixin"]):
        epoch_num = 0
        batch_size = 1
        is_audio_model = is_video = False
        dataset_config = config

        def __init__(self, file: Any):
            self.file_list = [file]

    class File(mixins["ImageProcessingDTOMixin"]):
        is_text_embedding_cached = is_latent_cached = is_audio_model = is_video = False
        use_alpha_as_mask = flip_x = flip_y = has_augmentations = False
        augments: list[str] = []  # noqa: RUF012
        dataset_config = config

        def __init__(self, path: Path):
            self.path = path
            self.width, self.height = exif_transpose(Image.open(path)).size

    def crop(path: Path) -> Cropped:
        file = File(path)
        Images(file).setup_buckets(quiet=True)
        file.load_and_process_image(None, only_load_latents=True)
        resized = (file.scale_to_height, file.scale_to_width)
        place = (file.crop_y, file.crop_x)
        return case((file.height, file.width), resized, place, np.array(file.tensor))

    return crop


def simple_tuner(rule: dict[str, Any], decoder: str = "load_image") -> Trainer:
    libraries = {**LIBRARIES, "tsr": trainingsample, "ts": trainingsample}
    side = round(rule["area"] ** 0.5)
    sample = simple_tuner_sample(side, rule["step"], libraries)
    folder = Path(os.environ["SIMPLE_TUNER"]) / "simpletuner/helpers"
    names = ["load_image", "remove_iccp_chunk", "_trainingsample_array_to_rgb_image"]
    names += ["decode_image_with_trainingsample", "decode_image_with_pil"]
    load = taken(folder / "image_manipulation/load.py", names, libraries)[decoder]

    def crop(path: Path) -> Cropped:
        one = sample(load(str(path)), "images", None, str(path))
        width, height = one.original_size
        made = one.prepare()
        wide, high = (int(side) for side in made.intermediary_size)
        place, row = made.crop_coordinates, made.target_size[::-1]
        cropped, pixels = case((height, width), (high, wide), place, np.array(made.image))
        cropped["sdxl"] = [[high, wide], list(place), list(row)]
        return cropped, pixels

    return crop


STYLES: dict[str, Callable[[dict[str, Any]], Trainer]] = {
    "sd-scripts": sd_scripts,
    "diffusers": diffusers,
    "ai-toolkit": ai_toolkit,
    "simpletuner": simple_tuner,
}
LADDER: dict[str, Any] = {"sides": [64, 256], "upscale": True}
# Rules, and how many of the images each has.
RULES: list[tuple[dict[str, Any], int]] = [
    ({"style": "sd-scripts", "area": 128 * 128, "step": 32, **LADDER}, 8),
    ({"style": "sd-scripts", "area": 96 * 96, "step": 8, **LADDER}, 4),
    ({"style": "sd-scripts", "area": 96 * 96, "step": 16, "upscale": False}, 5),
    ({"style": "diffusers", "area": 128 * 128, "step": 16}, 8),
    ({"style": "diffusers", "area": 96 * 96, "step": 8}, 5),
    ({"style": "ai-toolkit", "area": 128 * 128, "step": 32}, 8),
    ({"style": "ai-toolkit", "area": 96 * 96, "step": 8}, 5),
    ({"style": "simpletuner", "area": 128 * 128, "step": 32}, 8),
    ({"style": "simpletuner", "area": 96 * 96, "step": 8}, 5),
]
PHOTO_RULES: list[tuple[str, Callable[[dict[str, Any]], Trainer], dict[str, Any]]] = [
    ("sd-scripts", sd_scripts, {"step": 64, "upscale": True}),
    ("diffusers", diffusers, {"step": 16}),
    ("ai-toolkit", ai_toolkit, {"step": 8}),
    ("simpletuner", simple_tuner, {"step": 64}),
    ("simpletuner-pillow", partial(simple_tuner, decoder="decode_image_with_pil"), {"step": 64}),
]
# Height and width.
SIZES = [(201, 300), (299, 180), (60, 91), (128, 128), (87, 64), (110, 333), (400, 267), (77, 103)]


def drawn(number: int, height: int, width: int) -> Image.Image:
    """Smooth noise with shapes: sharp edges, thin lines, and levels at both ends."""
    draws = np.random.default_rng(number)
    grid = draws.integers(0, 256, (height // 24 + 2, width // 24 + 2, 3), dtype=np.uint8)
    image = Image.fromarray(grid).resize((width, height), Image.Resampling.BICUBIC)
    pen = ImageDraw.Draw(image)
    for shape in range(7):
        x, y = int(draws.integers(0, width)), int(draws.integers(0, height))
        w, h = (int(side) for side in draws.integers(6, min(height, width) // 2, 2))
        colour = tuple(int(level) for level in draws.choice([0, 40, 128, 200, 255], 3))
        if shape % 3 == 0:
            pen.rectangle((x - w // 2, y - h // 2, x + w // 2, y + h // 2), fill=colour)
        elif shape % 3 == 1:
            pen.ellipse((x - w // 2, y - h // 2, x + w // 2, y + h // 2), fill=colour)
        else:
            pen.line((x - w, y - h, x + w, y + h), fill=colour, width=1 + shape // 3)
    return image


def write_goldens(out: Path) -> None:
    for number, (height, width) in enumerate(SIZES):
        drawn(number, height, width).save(out / f"image-{number}.png", optimize=True)
    rules = []
    odd = dict.fromkeys(STYLES, 0)
    for number, (rule, images) in enumerate(RULES):
        crop = STYLES[rule["style"]](rule)
        cases = []
        for image in range(images):
            made, pixels = crop(out / f"image-{image}.png")
            assert pixels.shape == (*made["row"], 3), (rule, made)
            odd[rule["style"]] += any((r - c) % 2 for r, c in zip(*sides_of(made), strict=True))
            name = f"row-{number}-{image}.png"
            Image.fromarray(pixels).save(out / name, optimize=True)
            cases.append({"image": f"image-{image}.png", **made, "pixels": name})
        rules.append({"rule": rule, "cases": cases})
    assert min(odd.values()) >= 3, f"cases with odd margins: {odd}"
    text = ",\n".join(json.dumps(one) for one in rules)
    (out / "cases.json").write_text(f"[\n{text}\n]\n")


def sides_of(made: dict[str, Any]) -> tuple[list[int], list[int]]:
    return made["resized"], made["row"]


def write_photos(photos: Path, out: Path, side: int) -> None:
    files = sorted(p for p in photos.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    for style, trainer, rule in PHOTO_RULES:
        crop = trainer({"area": side * side, "sides": [side // 2, side * 2], **rule})
        at = 0
        with (
            (out / f"{style}.jsonl").open("w") as lines,
            (out / f"pixels-{style}.bin").open("wb") as raw,
        ):
            for path in files[:MOST_PHOTOS]:
                made, pixels = crop(path)
                data = np.ascontiguousarray(pixels).tobytes()
                line = {"photo": str(path.relative_to(photos)), **made, "at": at}
                line |= {"bytes": len(data), "crc32": f"{zlib.crc32(data):08x}"}
                lines.write(json.dumps(line) + "\n")
                raw.write(data)
                at += len(data)


if sys.argv[1] == "--photos":
    write_photos(Path(sys.argv[2]), Path(sys.argv[3]), int((sys.argv[4:] or [512])[0]))
else:
    write_goldens(Path(sys.argv[1]))

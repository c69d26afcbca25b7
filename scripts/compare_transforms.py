"""Compares the pixels of translated transforms with those of the originals, over photos.

    compare_transforms.py PHOTOS [COUNT]

PHOTOS is a folder; the first COUNT JPEG files in it (default 50) are read, in the order of their
paths. Prints a table: for each transform the largest and the mean difference of a value, in levels.

Needs featherload, torch, torchvision, timm and transformers. Nothing is downloaded: weights and
configs are those that the packages contain.
"""

import sys
from pathlib import Path

import numpy as np
import timm
import torchvision
import transformers
from PIL import Image
from PIL import __version__ as pillow
from torchvision import models

import featherload
from featherload import recipes

WEIGHTS = [
    models.ResNet50_Weights.IMAGENET1K_V2,
    models.EfficientNet_B0_Weights.IMAGENET1K_V1,
    models.EfficientNet_V2_S_Weights.IMAGENET1K_V1,
    models.ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1,
    models.ConvNeXt_Base_Weights.IMAGENET1K_V1,
    models.Swin_V2_B_Weights.IMAGENET1K_V1,
    models.MobileNet_V3_Large_Weights.IMAGENET1K_V2,
    models.RegNet_Y_16GF_Weights.IMAGENET1K_SWAG_E2E_V1,
]
TIMM = [
    "resnet50.a1_in1k",
    "vit_base_patch16_224.augreg_in21k_ft_in1k",
    "convnext_base.fb_in22k_ft_in1k",
    "efficientnet_b0.ra_in1k",
    "mobilenetv3_large_100.ra_in1k",
    "swin_base_patch4_window7_224.ms_in22k_ft_in1k",
    "deit3_base_patch16_224.fb_in22k_ft_in1k",
    "beit_base_patch16_224.in22k_ft_in22k_in1k",
    "eva02_base_patch14_448.mim_in22k_ft_in22k_in1k",
    "regnety_032.ra_in1k",
    "tf_efficientnetv2_s.in21k_ft_in1k",
]
HALVES = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
# Settings of models on the hub where a class has no usable defaults.
PROCESSORS = {
    "DINOv3ViT": {},
    "EfficientNet": {"size": {"height": 224, "width": 224}, "resample": 3},
    "MobileNetV2": {},
    "MobileViT": {"size": {"shortest_edge": 288}, "resample": 2},
    "Levit": {},
    "Pvt": {"resample": 2},
    "PoolFormer": {"crop_pct": 0.95},
    # siglip2-base-patch16-224.
    "Siglip": {"size": {"height": 224, "width": 224}, "resample": 2},
    "Blip": {},
    "ViT": HALVES,
    "CLIP": {},
    "ConvNext": {"size": {"shortest_edge": 224}, "crop_pct": 0.875, "resample": 3},
}


def rows(recipe, paths):
    """The rows, one by one."""
    with featherload.Loader(
        [str(path) for path in paths],
        recipe,
        batch_size=1,
        shuffle=False,
        num_workers=1,
    ) as loader:
        for images, _ in loader:
            yield np.array(images[0], dtype=np.float64)


def compare(recipe, theirs, paths):
    """Largest and mean difference, in levels."""
    normalize = [op["normalize"] for op in recipe["ops"] if "normalize" in op]
    std = np.array(normalize[0]["std"] if normalize else [1.0] * 3)[:, None, None]
    largest, sums, count = 0.0, 0.0, 0
    for path, row in zip(paths, rows(recipe, paths), strict=True):
        other = np.asarray(theirs(Image.open(path).convert("RGB")), dtype=np.float64)
        assert other.shape == row.shape, (other.shape, row.shape)
        off = abs(row - other) * std * 255
        largest, sums, count = (
            max(largest, off.max()),
            sums + off.sum(),
            count + off.size,
        )
    return largest, sums / count


def cases():
    for weights in WEIGHTS:
        transform = weights.transforms()
        yield (
            "torchvision",
            f"{type(weights).__name__}.{weights.name}",
            recipes.torchvision(transform),
            transform,
        )
    for name in TIMM:
        config = timm.data.resolve_data_config(
            pretrained_cfg=timm.get_pretrained_cfg(name).to_dict()
        )
        yield (
            "timm",
            name,
            recipes.create_transform(**config),
            timm.data.create_transform(**config),
        )
    for name, config in PROCESSORS.items():
        for suffix in ("", "Pil"):
            kind = getattr(transformers, f"{name}ImageProcessor{suffix}", None)
            # DINOv3 has a processor of torch alone.
            if kind is None or (suffix and name == "DINOv3ViT"):
                continue
            processor = kind(**config)
            yield (
                "transformers",
                kind.__name__,
                recipes.preprocessor(processor),
                lambda one, by=processor: by(one, return_tensors="np")["pixel_values"][
                    0
                ],
            )


def main():
    folder, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 50
    found = sorted(
        p for p in folder.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg")
    )
    paths = found[:count]
    if len(paths) < count:
        sys.exit(f"{folder} has {len(paths)} JPEG files: give a folder with {count}")
    versions = [
        f"featherload {featherload.__version__}",
        f"torchvision {torchvision.__version__}",
        f"timm {timm.__version__}",
        f"transformers {transformers.__version__}",
        f"Pillow {pillow}",
    ]
    print(", ".join(versions) + f"; {count} photos\n")
    print("| package | transform | largest | mean |\n|---|---|---|---|")
    for package, name, recipe, theirs in cases():
        largest, mean = compare(recipe, theirs, paths)
        print(f"| {package} | `{name}` | {largest:.3f} | {mean:.4f} |", flush=True)


if __name__ == "__main__":
    main()

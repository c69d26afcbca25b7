"""How the image processors of Hugging Face interpret their configs: one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

HALVES = [0.5, 0.5, 0.5]
CLIP_MEAN = [0.48145466, 0.4578275, 0.40821073]
CLIP_STD = [0.26862954, 0.26130258, 0.27577711]


@dataclass(frozen=True)
class ProcessorKind:
    """How one class of image processor interprets its config.

    Defaults are those on which transformers 4 and 5 agree. None: the config must have the key.
    """

    number: str | None
    """Meaning of a size that is one number: "square" or "shorter". None: it is rejected."""
    size: Mapping[str, int] | None
    resample: int | None
    mean: list[float]
    std: list[float]
    crops: bool = False
    """Whether it has do_center_crop and crop_size."""
    do_center_crop: bool | None = False
    crop: int = 224
    """Both sides of a crop_size that is missing."""
    crop_pct: float | None = None
    """ConvNext's rule: below 384 pixels it resizes to size / crop_pct, then crops the middle."""
    enlarged: float | None = None
    """PoolFormer's rule: it resizes to size / crop_pct, with this default. No further crop."""
    levit: bool = False
    """The shorter side is 256 / 224 of the size."""
    floats: bool = False
    """Resizes values of 0 to 1, not levels."""
    antialias: bool = True
    """Whether a resize averages pixels when it shrinks."""
    flips: bool = False
    """Blue is the first channel, unless do_flip_channel_order is false. Never normalised."""
    normalizes: bool = True
    """Whether do_normalize is true if it is missing."""
    fixed: bool = False
    """Only a size of height and width is translated. Other sizes make images of several sizes."""
    pads: bool = False
    """Beside ``fixed``: a size of edges is translated, too. Rows are padded to the longest edge,
    and a batch is cut to its largest image."""
    pads_levels: bool = False
    """EoMT's rules: with do_pad, images are padded to the longest edge before they are
    normalised."""
    annotates: bool = False
    """A detector's rules: it has annotations of COCO."""
    divisor: int | None = None
    """Sides are rounded up to multiples of size_divisor, with this default."""
    multiples: bool = False
    """DPT's rules: sides are rounded to the nearest multiples of ensure_multiple_of."""
    keys: frozenset[str] = frozenset()
    """Further keys, which change no pixel."""
    standardises: bool = False
    """EfficientNet's rules: include_top divides by the deviation again, and rescale_offset
    subtracts 1."""


_SQUARE_224 = {"height": 224, "width": 224}
_IMAGENET_MEAN, _IMAGENET_STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
_CLIP = ProcessorKind(
    number="shorter",
    size={"shortest_edge": 224},
    resample=3,
    mean=CLIP_MEAN,
    std=CLIP_STD,
    crops=True,
    do_center_crop=True,
)
_BLIP = ProcessorKind("square", {"height": 384, "width": 384}, 3, CLIP_MEAN, CLIP_STD)
_DETECTOR = ProcessorKind(
    number=None,
    size={"shortest_edge": 800, "longest_edge": 1333},
    resample=2,
    mean=_IMAGENET_MEAN,
    std=_IMAGENET_STD,
    fixed=True,
    pads=True,
    annotates=True,
)
_SEGMENTER = replace(
    _DETECTOR,
    pads=False,
    annotates=False,
    divisor=32,
    keys=frozenset({"ignore_index", "num_labels"}),
)
KINDS = {
    "Beit": ProcessorKind("square", None, 3, HALVES, HALVES, crops=True, do_center_crop=None),
    "Bit": _CLIP,
    "Blip": _BLIP,
    "CLIP": _CLIP,
    "ChineseCLIP": _CLIP,
    "ConditionalDetr": _DETECTOR,
    "ConvNext": ProcessorKind(
        "shorter", {"shortest_edge": 384}, None, HALVES, HALVES, crop_pct=0.875
    ),
    "DeiT": ProcessorKind(
        "square",
        {"height": 256, "width": 256},
        3,
        HALVES,
        HALVES,
        crops=True,
        do_center_crop=True,
    ),
    "DeformableDetr": _DETECTOR,
    "Detr": _DETECTOR,
    "DPT": ProcessorKind(
        None, {"height": 384, "width": 384}, 3, HALVES, HALVES, fixed=True, multiples=True
    ),
    "DINOv3ViT": ProcessorKind(
        "square", _SQUARE_224, 2, _IMAGENET_MEAN, _IMAGENET_STD, crops=True, floats=True
    ),
    "EfficientNet": ProcessorKind(
        "square",
        {"height": 346, "width": 346},
        None,
        HALVES,
        HALVES,
        crops=True,
        crop=289,
        standardises=True,
    ),
    "Eomt": replace(
        _DETECTOR,
        size={"shortest_edge": 640, "longest_edge": 640},
        pads=False,
        pads_levels=True,
        annotates=False,
        keys=frozenset({"do_split_image", "ignore_index"}),
    ),
    # Without crop_to_patches. With it, it is one of the processors that make tiles.
    "GotOcr2": replace(_BLIP, keys=frozenset({"crop_to_patches", "max_patches", "min_patches"})),
    "GroundingDino": _DETECTOR,
    "Levit": ProcessorKind(
        "shorter",
        {"shortest_edge": 224},
        3,
        _IMAGENET_MEAN,
        _IMAGENET_STD,
        crops=True,
        do_center_crop=True,
        levit=True,
    ),
    "Mask2Former": _SEGMENTER,
    "MaskFormer": _SEGMENTER,
    "MobileNetV2": ProcessorKind(
        "shorter",
        {"shortest_edge": 256},
        2,
        HALVES,
        HALVES,
        crops=True,
        do_center_crop=True,
    ),
    "MobileViT": ProcessorKind(
        "shorter",
        {"shortest_edge": 224},
        None,
        HALVES,
        HALVES,
        crops=True,
        do_center_crop=True,
        crop=256,
        flips=True,
    ),
    "OneFormer": replace(
        _SEGMENTER,
        divisor=None,
        keys=_SEGMENTER.keys | {"class_info_file", "metadata", "num_text", "repo_path"},
    ),
    "PoolFormer": ProcessorKind(
        "shorter",
        {"shortest_edge": 224},
        3,
        _IMAGENET_MEAN,
        _IMAGENET_STD,
        crops=True,
        do_center_crop=True,
        enlarged=0.9,
    ),
    "Pvt": ProcessorKind("square", _SQUARE_224, None, _IMAGENET_MEAN, _IMAGENET_STD),
    "RTDetr": ProcessorKind(
        None,
        {"height": 640, "width": 640},
        2,
        _IMAGENET_MEAN,
        _IMAGENET_STD,
        normalizes=False,
        fixed=True,
        annotates=True,
    ),
    "RfDetr": replace(_DETECTOR, floats=True, antialias=False),
    "Segformer": ProcessorKind(
        "square", {"height": 512, "width": 512}, 2, _IMAGENET_MEAN, _IMAGENET_STD
    ),
    "Siglip": ProcessorKind(None, _SQUARE_224, 3, HALVES, HALVES),
    "ViT": ProcessorKind("square", _SQUARE_224, 2, HALVES, HALVES),
    # Its edges are multiples of 16.
    "Yolos": replace(_DETECTOR, pads=False),
}

"""The recipe files. Most operations occur at least twice, with parameters that are not defaults.

A recipe is a list of lines. Each line is an operation as a recipe file spells it. `write` makes
the files.
"""

SMALL = "random_resized_crop: {size: 64}"
IMAGENET = "normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}"
JITTER = "color_jitter: {brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1, p: 0.8}"

# Each recipe ends with one fixed size.
SHAPES = {
    "resize-shorter": ["resize: {size: 97}", "center_crop: {size: 64}"],
    "resize-shorter-most": ["resize: {size: 90, max_size: 101}", "pad_to: {size: 101}"],
    "resize-longer": [
        "resize: {max_size: 111, interpolation: bicubic}",
        "pad_to: {size: 111, anchor: center, fill: [3, 200, 90]}",
    ],
    "resize-rounded": [
        "resize: {size: 77, rounding: nearest, antialias: false}",
        "random_crop: {size: [77, 60]}",
    ],
    "resize-lanczos": ["resize: {size: [61, 83], interpolation: lanczos}"],
    "resize-lanczos-sharp": ["resize: {size: [61, 83], interpolation: lanczos, antialias: false}"],
    "resize-area": ["resize: {size: [50, 41], interpolation: area}"],
    "resize-area-sharp": ["resize: {size: [50, 41], interpolation: area, antialias: false}"],
    "resize-nearest": ["resize: {size: [41, 50], interpolation: nearest}"],
    "resize-bicubic-sharp": ["resize: {size: [66, 66], interpolation: bicubic, antialias: false}"],
    "resize-up": ["resize: {size: [700, 613], interpolation: bicubic}"],
    "resize-floats": [
        "cast: {dtype: f32}",
        "resize: {size: [45, 67], interpolation: bicubic}",
        "resize: {size: [33, 21], antialias: false}",
    ],
    "crop-resized": [
        "random_resized_crop: "
        "{size: [48, 80], scale: [0.3, 0.6], ratio: [0.2, 5], interpolation: bicubic}"
    ],
    "crop-resized-sharp": [
        "random_resized_crop: {size: 72, scale: [0.01, 0.02], ratio: [1, 1], antialias: false}"
    ],
    "crop-bounded": ["bounded_resized_crop: {size: [56, 72], scale: [0.2, 0.9], ratio: [0.5, 3]}"],
    "crop-bounded-log": [
        "bounded_resized_crop: "
        "{size: 64, scale: 0.05, ratio: [0.1, 9], aspect: log, interpolation: lanczos}"
    ],
    "crop-random": ["random_crop: {size: 70, pad_if_needed: true}"],
    "crop-random-padded": [
        "random_crop: "
        "{size: [90, 70], padding: [3, 5, 7, 11], pad_if_needed: true, fill: [255, 0, 128]}"
    ],
    "crop-random-edge": [
        "resize: {size: 70}",
        "random_crop: {size: 80, padding: [9, 6], padding_mode: edge}",
    ],
    "crop-random-reflect": [
        "resize: {size: 70}",
        "random_crop: {size: 77, padding: 5, padding_mode: reflect}",
    ],
    "crop-center-padded": ["center_crop: {size: [613, 700]}"],
    "crop-center": ["resize: {size: 57}", "center_crop: {size: [33, 57]}"],
    "crop-center-down": ["resize: {size: 58}", "center_crop: {size: [41, 33], rounding: down}"],
    "crop-center-ratio": ["center_crop: {ratio: 0.5}", "resize: {size: [64, 64]}"],
    "crop-center-ratio-down": [
        "center_crop: {ratio: 0.871, rounding: down}",
        "resize: {size: [50, 70]}",
    ],
    "flip-horizontal": ["resize: {size: [53, 64]}", "random_horizontal_flip: {p: 1}"],
    "flip-vertical": ["resize: {size: [53, 64]}", "random_vertical_flip: {p: 1}"],
    "flip-both": [
        "random_vertical_flip: {p: 0.3}",
        "random_horizontal_flip: {p: 0.7}",
        "resize: {size: [53, 64]}",
    ],
    "rotation-nearest": ["resize: {size: [60, 71]}", "random_rotation: {degrees: 30}"],
    "rotation-expanded": [
        "random_rotation: "
        "{degrees: [10, 55], interpolation: bilinear, expand: true, fill: [9, 90, 200]}",
        "resize: {size: [64, 64]}",
    ],
    "rotation-expanded-nearest": [
        "resize: {size: 90}",
        "random_rotation: {degrees: [-100, -80], expand: true, fill: 77, p: 0.6}",
        "center_crop: {size: 64}",
    ],
    "rotation-opencv": [
        "resize: {size: [60, 71]}",
        "random_rotation: {degrees: 170, interpolation: bicubic, style: opencv, p: 0.7}",
    ],
    "rotation-opencv-bilinear": [
        "resize: {size: [60, 71]}",
        "random_rotation: {degrees: 25, interpolation: bilinear, style: opencv, fill: [1, 2, 3]}",
    ],
    "rotation-opencv-nearest": [
        "resize: {size: [71, 60]}",
        "random_rotation: {degrees: [45, 45], interpolation: nearest, style: opencv}",
    ],
    "rotation-floats": [
        "resize: {size: [60, 71]}",
        "cast: {dtype: f32}",
        "random_rotation: {degrees: 33, interpolation: bilinear, fill: 12.5}",
    ],
    "quarter-turn": ["rotate90: {times: 1}", "resize: {size: [48, 64]}"],
    "quarter-turns-back": ["resize: {size: [48, 64]}", "rotate90: {times: -3}"],
    "quarter-turns": [
        "random_rotate90",
        "resize: {size: [48, 64]}",
        "random_horizontal_flip: {p: 0.5}",
    ],
    "quarter-turns-labels": ["resize: {size: [64, 64]}", "random_rotate90: {label: true}"],
    "pad": ["resize: {size: [40, 50]}", "pad: {padding: [1, 2, 3, 4], fill: [10, 20, 30]}"],
    "pad-edge": ["pad: {padding: [30, 11], padding_mode: edge}", "resize: {size: [64, 64]}"],
    "pad-reflect": ["resize: {size: [40, 50]}", "pad: {padding: 17, padding_mode: reflect}"],
    "pad-floats": [
        "resize: {size: [40, 50]}",
        "cast: {dtype: f32}",
        "pad: {padding: 3, fill: [0.5, 1.25, 200]}",
    ],
    "pad-to-corner": [
        "resize: {size: 64, max_size: 90}",
        "pad_to: {size: [96, 92], anchor: bottom_right, padding_mode: edge}",
    ],
    "pad-to-offset": [
        "resize: {max_size: 60}",
        "pad_to: {size: 70, offset: [4, 9], fill: [7, 77, 177]}",
    ],
    "pad-to-multiple": [
        "pad_to: {multiple_of: [32, 48], anchor: center, padding_mode: reflect}",
        "resize: {size: [64, 64]}",
    ],
}

COLOURS = {
    "jitter": [SMALL, JITTER],
    "jitter-written-order": [
        SMALL,
        "color_jitter: {brightness: [0.2, 1.9], contrast: [0, 3], saturation: [0, 4], "
        "hue: 0.5, random_order: false}",
    ],
    "jitter-pillow": [
        SMALL,
        "color_jitter: {brightness: 0.8, contrast: 0.8, saturation: 0.8, hue: 0.4, style: pillow}",
    ],
    "jitter-pillow-order": [
        SMALL,
        "color_jitter: {brightness: [1.5, 1.5], contrast: [0.3, 0.3], hue: [-0.2, -0.2], "
        "random_order: false, style: pillow, p: 0.7}",
    ],
    "jitter-floats": [SMALL, "cast: {dtype: f32}", JITTER],
    "jitter-contrast": [
        "center_crop: {ratio: 0.7}",
        "color_jitter: {contrast: 0.9}",
        "resize: {size: [50, 60]}",
    ],
    "grey-one": [SMALL, "grayscale: {num_output_channels: 1}"],
    "grey-three": [SMALL, "grayscale: {num_output_channels: 3}", "cast: {dtype: f32}"],
    "grey-some": [SMALL, "random_grayscale: {p: 0.5}"],
    "grey-some-floats": [SMALL, "cast: {dtype: f32}", "random_grayscale: {p: 0.9}"],
    "lab": ["convert_color: {to: lab}", "resize: {size: [64, 64]}"],
    "lab-d50": [
        SMALL,
        "convert_color: {to: lab, white_point: d50}",
        "normalize: {mean: [50, 0, 0], std: [50, 60, 70]}",
    ],
    "hsv": [SMALL, "convert_color: {to: hsv}"],
    "ycbcr": ["convert_color: {to: ycbcr}", SMALL, "random_horizontal_flip"],
    "lighting": [SMALL, "pca_lighting"],
    "lighting-strong": [
        SMALL,
        "pca_lighting: {std: 3, unit: 1, eigenvalues: [20.5, 9.25, 4], "
        "eigenvectors: [[0.1, 0.9, -0.4], [0.5, -0.3, 0.8], [-0.8, 0.2, 0.4]]}",
    ],
    "lighting-floats": [SMALL, "cast: {dtype: f32}", "pca_lighting: {std: 0.7}"],
    "blur": [SMALL, "gaussian_blur: {kernel_size: [3, 9], sigma: [0.4, 3]}"],
    "interpolation": [SMALL, "random_interpolation: {p: 1}"],
    "interpolation-some": ["resize: {size: [90, 80]}", "random_interpolation: {p: 0.4}"],
    "blur-wide": ["resize: {size: [90, 80]}", "gaussian_blur: {kernel_size: 23, sigma: 5}"],
    "blur-floats": [SMALL, "cast: {dtype: f32}", "gaussian_blur: {kernel_size: 5}"],
    "erasing": [SMALL, "random_erasing: {p: 0.9, value: [5, 50, 250]}"],
    "erasing-uniform": [
        SMALL,
        "random_erasing: "
        "{p: 0.8, scale: [0.2, 0.9], ratio: [0.1, 8], aspect: uniform, attempts: 3, value: random}",
    ],
    "erasing-normal": [SMALL, IMAGENET, "random_erasing: {p: 0.7, value: random}"],
    "erasing-normal-value": [SMALL, IMAGENET, "random_erasing: {p: 1, value: [-1, 0.5, 2]}"],
    "crop-with-padding": [
        "resize: {size: [70, 80]}",
        "crop_with_padding: {p: 0.8, scale: [0.1, 0.5], ratio: [0.3, 3], value: [200, 30, 1]}",
    ],
    "crop-with-padding-floats": [
        "cast: {dtype: f32}",
        "crop_with_padding: {value: 0.25}",
        "resize: {size: [64, 64]}",
    ],
    "normalize-one": [SMALL, "normalize: {mean: 0.5, std: [0.25, -0.5, 2]}"],
    "normalize-grey": ["decode: {color: grey}", SMALL, "normalize: {mean: 0.3, std: 0.7}"],
    "cast-bf16": [SMALL, IMAGENET, "cast: {dtype: bf16}"],
    "cast-and-back": [SMALL, "cast: {dtype: f32}", JITTER, "cast: {dtype: u8}"],
    "layout-nchw": [SMALL, "layout: {layout: nchw}"],
    "layout-nhwc": [SMALL, IMAGENET, "cast: {dtype: f16}", "layout: {layout: nhwc}"],
}

POLICIES = {
    "policy-auto": [SMALL, "auto_augment"],
    "policy-auto-imagenet": ["resize: {size: [80, 99]}", "auto_augment: {policy: imagenet}"],
    "policy-rand": [SMALL, "rand_augment"],
    "policy-rand-bilinear": [
        SMALL,
        "rand_augment: " "{num_ops: 4, magnitude: 17, interpolation: bilinear, fill: [30, 60, 90]}",
    ],
    "policy-rand-paddle": [SMALL, "rand_augment: {table: paddle, num_ops: 3, magnitude: 7.5}"],
    "policy-rand-paddle3": [SMALL, "rand_augment: {table: paddle3, magnitude: 10}"],
    "policy-rand-paddle4": [SMALL, "rand_augment: {table: paddle4}"],
    "policy-trivial": [SMALL, "trivial_augment: {interpolation: bicubic, fill: 128}"],
    "policy-trivial-nearest": ["random_horizontal_flip", SMALL, "trivial_augment"],
    "policy-aug-mix": [SMALL, "aug_mix: {p: 0.9, alpha: 1, width: 2, depth: random, severity: 6}"],
    "policy-aug-mix-deep": [SMALL, "aug_mix: {p: 1, alpha: 0.3, width: 5, depth: 4, severity: 10}"],
    "policy-timm": [
        "random_horizontal_flip",
        SMALL,
        "timm_augment: {config: rand-m9-mstd0.5-inc1, interpolation: [bilinear, bicubic]}",
    ],
    "policy-timm-weighted": [
        SMALL,
        "timm_augment: {config: rand-m7-n5-w0, p: 0.8, interpolation: [nearest], fill: 0}",
    ],
    "policy-timm-augmix": [
        SMALL,
        "timm_augment: {config: augmix-m5-w4-d2, interpolation: [bilinear, bicubic]}",
    ],
    "policy-timm-augmix-blended": [SMALL, "timm_augment: {config: augmix-m9-mstd0.5-b1}"],
    "policy-timm-auto": [SMALL, "timm_augment: {config: original-mstd0.5}"],
    "policy-timm-auto-v0r": [SMALL, "timm_augment: {config: v0r, p: 0.9}"],
    "policy-cutout": ["resize: {size: [80, 70]}", "cutout: {p: 0.8, holes: 5, length: 17}"],
    "policy-cutout-random": [
        "resize: {size: [80, 70]}",
        "cutout: {holes: 3, length: 40, value: random}",
    ],
}

DECODES = {
    "decode-bgr": ["decode: {color: bgr}", SMALL, IMAGENET],
    "decode-grey": ["decode: {color: grey}", SMALL],
    "decode-black": ["decode: {background: black}", SMALL],
    "decode-colour": ["decode: {background: '#3fa0c8', orientation: stored}", SMALL],
    "decode-no-alpha": ["decode: {alpha: drop, mode: full}", SMALL],
    "decode-scaled": ["decode: {mode: scaled}", "resize: {size: [40, 40]}"],
    "decode-full-grey": [
        "decode: {color: grey, mode: full, orientation: stored}",
        "resize: {size: [40, 40]}",
    ],
}

# Operations that the planner moves, and operations that it must not move.
ORDERS = {
    "order-lab": ["convert_color: {to: lab}", "cast: {dtype: f32}", "resize: {size: [96, 96]}"],
    "order-jitter": [JITTER, "random_resized_crop: {size: 96}", "random_horizontal_flip", IMAGENET],
    "order-floats": [
        "cast: {dtype: f32}",
        "pad: {padding: 9, padding_mode: reflect}",
        "random_crop: {size: 90, pad_if_needed: true}",
        "random_rotate90",
        IMAGENET,
        "resize: {size: [64, 64]}",
    ],
    "order-mixed": [
        "random_vertical_flip",
        "pca_lighting",
        "resize: {size: 128}",
        "gaussian_blur: {kernel_size: 5}",
        "random_crop: {size: 100}",
        "random_grayscale: {p: 0.3}",
        "rotate90: {times: 1}",
        IMAGENET,
        "random_erasing: {value: random}",
        "cast: {dtype: f16}",
    ],
}

# Operations that a device's kernel has a step for, and operations that it lacks.
DEVICE = {
    "contrast": [
        "random_resized_crop: {size: 224}",
        "random_horizontal_flip",
        "color_jitter: {brightness: [0.6, 1.4], contrast: [0.6, 1.4], saturation: [0.6, 1.4], "
        "hue: [-0.1, 0.1]}",
        IMAGENET,
        "cast: {dtype: f16}",
    ],
    "device-lab": [
        "convert_color: {to: lab}",
        "resize: {size: [256, 256]}",
        "cast: {dtype: f16}",
    ],
    "device-blur": [SMALL, "gaussian_blur: {kernel_size: 5}", IMAGENET],
}

PRESETS = ("train224", "eval224", "full")
SINGLE = SHAPES | COLOURS | POLICIES | DECODES

MIX_BEFORE = [SMALL, "random_horizontal_flip", IMAGENET, "cast: {dtype: f32}"]
ONE_OF = """one_of:
        - {p: 0.3, op: {mixup: {alpha: 0.8}}}
        - {p: 0.3, op: {cutmix: {alpha: 1.0}}}
        - {p: 0.3, op: {fmix: {alpha: 1.0, decay_power: 2.5, max_soft: 0.2}}}"""
TIMM = "mixup_cutmix: {mixup_alpha: 0.8, cutmix_alpha: 1.0}"
TIMM_RARE = (
    "mixup_cutmix: "
    "{mixup_alpha: 0.2, cutmix_alpha: 0.5, p: 0.7, switch_p: 0.8, label_smoothing: 0}"
)

# Labels of five classes, the most that these data sets have.
MIXINGS = {
    "mix-none": [],
    "mix-smoothing": ["label_smoothing: {epsilon: 0.1}"],
    "mix-mixup": ["mixup: {alpha: 0.2}"],
    "mix-mixup-smoothed": ["label_smoothing: {epsilon: 0.3}", "mixup: {alpha: 4}"],
    "mix-cutmix": ["cutmix: {alpha: 1.0}"],
    "mix-cutmix-smoothed": ["cutmix: {alpha: 0.3}", "label_smoothing: {epsilon: 0.05}"],
    "mix-fmix": ["fmix: {alpha: 1.0}"],
    "mix-fmix-soft": ["fmix: {alpha: 0.5, decay_power: 1.5, max_soft: 0.4}"],
    "mix-one-of": ["label_smoothing: {epsilon: 0.1}", ONE_OF],
    "mix-timm": [TIMM],
    "mix-timm-rare": [TIMM_RARE],
}

OPERATIONS = SINGLE | ORDERS | DEVICE


def write(folder):
    """Writes every recipe as a file of `folder`."""
    folder.mkdir()
    for name, ops in OPERATIONS.items():
        (folder / f"{name}.yaml").write_text(_text(ops))
    for name, ops in MIXINGS.items():
        mixing = ["mixing:", "  num_classes: 5", "  ops:" if ops else "  ops: []"]
        mixing += [f"    - {op}" for op in ops]
        (folder / f"{name}.yaml").write_text(_text(MIX_BEFORE) + "\n".join(mixing) + "\n")
    (folder / "typo.yaml").write_text(_text(["color_jitter: {contrats: 0.4}", SMALL]))
    (folder / "no-size.yaml").write_text(_text(["resize: {size: 64}"]))


def _text(ops):
    if not ops[0].startswith("decode"):
        ops = ["decode: {color: rgb}", *ops]
    return "featherload: 1\nops:\n" + "".join(f"  - {op}\n" for op in ops)

"""Makes tests/goldens/timm_policies.tar: images that timm's own AugMix and AutoAugment made, with
the numbers that they drew.

    timm_policies.py OUT

OUT/in.u8        the images, made here from fixed seeds
OUT/policies.u8  what timm made of them
OUT/policies.json the cases, as in augment.py: `steps`, `input`, `expected` and `size`
OUT/draws.json   for every operation of those cases, its policy, name, level, sign and filter, and
                 the `step` with the arguments that timm passed to Pillow; for every AugMix in
                 blended mode its weights, and the factors of each blend
OUT/tables.json  the operations of AugMix, and the tables of AutoAugment

The transforms come from `timm.data.create_transform` with `separate=True`, and draw their numbers
from seeded generators. They are only watched here. Pillow rejects posterize with 0 bits since
version 13. Before, it returned black, and so does this script.

Needs NumPy, Pillow and timm 1.0.31.
"""

import json
import random
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from timm.data import auto_augment as aa
from timm.data import create_transform

FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
MEAN = (0.485, 0.456, 0.406)
FILL = [124, 116, 104]
# Height, width.
ONE, TINY, SMALL, ODD, LARGE, SQUARE = (1, 1), (3, 2), (7, 10), (11, 17), (25, 33), (12, 12)
CHAINS = [
    "augmix-m5-w4-d2",
    "augmix",
    "augmix-m10-mstd0",
    "augmix-m7-w1-d3-mstd2.5-a0.3",
    "augmix-m9-b1",
    "augmix-m4-w5-d1-a0.5-mstd1-b1",
]
TABLES = ["original", "originalr", "v0", "v0r"]


def picture(size, seed):
    """An image like a photo, with noise in one channel."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: size[0], : size[1]]
    wave = 60 * np.sin(x / 3.1)[..., None] * np.cos(y / 2.3)[..., None]
    colour = np.array([0, 11, -17]) + rng.integers(-9, 10, (*size, 3))
    levels = np.clip(128 + wave + colour, 40, 210)
    levels[..., seed % 3] = rng.integers(0, 256, size)
    return levels.astype(np.uint8)


class Blends:
    """Pillow's `Image` for timm, which notes the factors of blends. Enhancements use Pillow's own."""

    def __init__(self):
        self.factors = []

    def __getattr__(self, name):
        return getattr(Image, name)

    def blend(self, a, b, factor):
        self.factors.append(float(factor))
        return Image.blend(a, b, factor)


class Watch:
    """Notes what the operations of timm draw and do."""

    def __init__(self):
        self.steps, self.ops, self.mixes = [], [], []
        self.level, self.sign, self.filter = 0.0, 1, None
        negate, interpolation = aa._randomly_negate, aa._interpolation

        def signed(value):
            made = negate(value)
            self.sign = 1 if made == value else -1
            return made

        def filtered(kwargs):
            self.filter = interpolation(kwargs)
            return self.filter

        aa._randomly_negate, aa._interpolation = signed, filtered

    def watch(self, config, op):
        level_fn, aug_fn = op.level_fn, op.aug_fn

        def level(value, hparams):
            self.level, self.sign = value, 1
            return level_fn(value, hparams)

        def run(img, *args, **kwargs):
            self.filter = None
            if op.name.startswith("Posterize") and args == (0,):
                made = img.point(lambda _: 0)
            else:
                made = aug_fn(img, *args, **kwargs)
            step = self.step(op.name, img.size, *args)
            self.steps.append(step)
            one = {"policy": config, "name": op.name, "level": self.level, "sign": self.sign}
            filter = self.filter and FILTERS[self.filter]
            size = img.size[::-1]
            self.ops.append({**one, "filter": filter, "size": size, "step": step})
            return made

        if level_fn:
            op.level_fn = level
        op.aug_fn = run

    def step(self, name, size, amount=None):
        """The step of a recipe, with the arguments that timm passed to Pillow."""
        name = name.removesuffix("Increasing").removesuffix("Original").removesuffix("Rel")
        look = {"interpolation": FILTERS.get(self.filter), "fill": FILL}
        affine = {
            "ShearX": (1, amount, 0, 0, 1, 0),
            "ShearY": (1, 0, 0, amount, 1, 0),
            "TranslateX": (1, 0, amount and amount * size[0], 0, 1, 0),
            "TranslateY": (1, 0, 0, 0, 1, amount and amount * size[1]),
        }
        if name in affine:
            return {"affine": {"matrix": [float(v) for v in affine[name]], **look}}
        return {
            "AutoContrast": "auto_contrast",
            "Equalize": "equalize",
            "Invert": "invert",
            "Rotate": {"rotate": {"degrees": amount, **look}},
            "Posterize": {"posterize": {"bits": amount}},
            "Solarize": {"solarize": {"threshold": amount}},
            "SolarizeAdd": {"solarize_add": {"add": amount, "threshold": 128}},
            "Brightness": {"brightness": amount},
            "Contrast": {"contrast": amount},
            "Color": {"color": amount},
            "Sharpness": {"sharpness": amount},
        }[name]

    def mixing(self, augmix):
        """Adds the steps that mix chains. A chain begins where its operations are drawn."""
        choice = np.random.choice
        basic, blended = augmix._apply_basic, augmix._apply_blended

        def run(apply, is_blended):
            def mixed(img, weights, m):
                ends, blends = [], Blends()

                def chosen(ops, depth, replace):
                    ends.append(len(self.steps))
                    return choice(ops, depth, replace=replace)

                np.random.choice, aa.Image = chosen, blends
                try:
                    made = apply(img, weights, m)
                finally:
                    np.random.choice, aa.Image = choice, Image
                factors = blends.factors
                assert weights.dtype == np.float32 and len(ends) == len(weights)
                ends = [*ends[1:], len(self.steps)]
                done, first = ["keep"], 0
                if is_blended:
                    done.append({"add_single": {"weight": 1.0}})
                for end, weight, factor in zip(ends, weights, factors if is_blended else weights):
                    kind = {"mix_in": {"by": factor}}
                    if not is_blended:
                        kind = {"add_single": {"weight": float(weight)}}
                    done += [*self.steps[first:end], kind]
                    first = end
                if is_blended:
                    done.append("total")
                    weights = [float(weight) for weight in weights]
                    self.mixes.append({"weights": weights, "by": float(m), "factors": factors})
                else:
                    assert factors == [float(m)]
                    done.append({"blend_total": {"by": float(m)}})
                self.steps = done
                return made

            return mixed

        augmix._apply_basic, augmix._apply_blended = run(basic, False), run(blended, True)


def transform(config, interpolation="random"):
    """The policy alone."""
    given = {"auto_augment": config, "color_jitter": None, "mean": MEAN, "separate": True}
    stages = create_transform(64, True, interpolation=interpolation, **given)
    [policy] = stages[1].transforms
    return policy


class Files:
    def __init__(self):
        self.files = {"in.u8": bytearray(), "policies.u8": bytearray()}

    def keep(self, file, pixels):
        raw, all_ = np.ascontiguousarray(pixels).tobytes(), self.files[file]
        at = all_.find(raw)
        if at < 0:
            at = len(all_)
            all_ += raw
        return at


def main():
    out, files, watch, cases = Path(sys.argv[1]), Files(), Watch(), []
    kinds = [(config, size, 0) for config in CHAINS for size in (ODD, SQUARE, TINY, ONE, LARGE)]
    # Every pair of every table, with and without a deviation.
    kinds += [
        (f"{name}{noise}", size, pair)
        for name in TABLES
        for pair in range(25)
        for noise, size in (("", SMALL), ("-mstd3", ODD if pair == 3 else SMALL))
    ]
    for number, (config, size, pair) in enumerate(kinds):
        random.seed(number)
        np.random.seed(number)
        policy = transform(config, ("random", "bicubic", "bilinear")[number % 3])
        if config.startswith("augmix"):
            for op in policy.ops:
                watch.watch(config, op)
            watch.mixing(policy)
        else:
            policy.policy = [policy.policy[pair]]
            for op in policy.policy[0]:
                watch.watch(config, op)
        watch.steps = []
        before = picture(size, number % 7)
        made = np.asarray(policy(Image.fromarray(before)))
        assert made.shape == before.shape
        at, expected = files.keep("in.u8", before), files.keep("policies.u8", made)
        cases.append({"input": at, "expected": expected, "size": size, "steps": watch.steps})
    told = {
        name: [[(op.name, op.prob, op.magnitude) for op in pair] for pair in transform(name).policy]
        for name in TABLES
    }
    for file, raw in files.files.items():
        (out / file).write_bytes(raw)
    lines = ",\n".join(json.dumps(case) for case in cases)
    (out / "policies.json").write_text(f"[\n{lines}\n]\n")
    # Each operation once for the same draws.
    ops = list({json.dumps(op): None for op in watch.ops})
    ops = ",\n".join(ops)
    mixes = ",\n".join(json.dumps(mix) for mix in watch.mixes)
    (out / "draws.json").write_text(f'{{"ops": [\n{ops}\n], "mixes": [\n{mixes}\n]}}\n')
    chain = [op.name for op in transform("augmix").ops]
    (out / "tables.json").write_text(json.dumps({"chain": chain, "tables": told}) + "\n")
    seen = sorted({op["name"] for op in watch.ops})
    print(f"{len(cases)} cases, {len(watch.ops)} operations: {', '.join(seen)}")


if __name__ == "__main__":
    main()

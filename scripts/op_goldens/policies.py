"""Records the calls that PaddleClas' augmentation policies make to Pillow, for every strength.

PADDLECLAS is the folder `ppcls` of paddleclas 2.4.0 (later packages do not contain the
operations): `pip download --no-deps paddleclas==2.4.0`, and unzip the wheel. Its functions
get an image that only records the calls, and no pixel is computed. The image is not square,
so that swapped sides are found.
"""

import importlib.util
import json
import os
import pathlib
import sys

import numpy as np

np.int = int  # removed from current NumPy
WIDTH, HEIGHT = 100, 37
FILTERS = {0: "nearest", 2: "bilinear", 3: "bicubic"}


def module(name):
    folder = pathlib.Path(os.environ["PADDLECLAS"]) / "data/preprocess/ops"
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


class Fixed:
    """Replaces the random numbers of a module by the given sign."""

    def __init__(self, sign):
        self.sign = sign

    def choice(self, of):
        return self.sign if list(of) == [-1, 1] else of[0]

    def random(self):
        return 0.0 if self.sign > 0 else 0.75

    def uniform(self, **_):
        return self.random()


class Said:
    """Replaces images and Pillow's modules, and records the arguments of their calls."""

    size = (WIDTH, HEIGHT)
    mode = "RGB"
    AFFINE, NEAREST, BILINEAR, BICUBIC = 0, 0, 2, 3

    def __init__(self):
        self.args, self.filter, self.fill = None, None, None

    def moved(self, args, filter, fill):
        self.args, self.filter = args, FILTERS[filter or 0]
        self.fill = list(fill) if fill is not None else None
        return self

    def transform(self, size, _, matrix, resample=0, fillcolor=None, **__):
        return self.moved(list(matrix), resample, fillcolor)

    def rotate(self, degrees, resample=0, fillcolor=None, **_):
        return self.moved([degrees], resample, fillcolor)

    def convert(self, _):
        return self

    def composite(self, rotated, _, __):
        self.fill = list(_)
        return rotated

    def new(self, _, __, color):
        return color[:3]

    def point(self, table):
        self.args = [table[0]]  # solarize_add of black
        return self

    def with_(self, *args):
        self.args = list(args)
        return self

    def autocontrast(self, _):
        return self.with_()

    equalize = invert = autocontrast

    def posterize(self, _, bits):
        return self.with_(bits)

    solarize = posterize

    def Color(self, _):
        return self

    Contrast = Brightness = Sharpness = Color

    def enhance(self, factor):
        return self.with_(factor)


def told(loaded, call):
    """The arguments for the sign +, and those for - if they differ; the filter and the fill."""
    args, said = [], None
    for sign in (1, -1):
        said = Said()
        loaded.random = Fixed(sign)
        for name in ("Image", "ImageOps", "ImageEnhance"):
            setattr(loaded, name, said)
        call(said)
        if said.args is None:  # posterize with 8 bits or more
            said.args = []
        if said.args not in args:
            args.append(said.args)
    return args, said.filter, said.fill


def table(loaded, levels, call):
    rows = [told(loaded, lambda said: call(level, said)) for level in levels]
    _, filter, fill = rows[-1]
    return {"filter": filter, "fill": fill, "levels": list(levels), "args": [r[0] for r in rows]}


def imagenet():
    loaded = module("autoaugment")
    real, pairs = loaded.SubPolicy, []
    loaded.SubPolicy = lambda *args: pairs.append(list(args[:6]))
    loaded.ImageNetPolicy()
    names = "shearX shearY translateX translateY rotate color posterize solarize contrast".split()
    names += "sharpness brightness autocontrast equalize invert".split()

    def one(name):
        def call(level, said):
            policy = real(1.0, name, level, 0.0, "invert", 0)
            policy.operation1(said, policy.magnitude1)

        return table(loaded, range(10), call)

    return {"pairs": pairs, "ops": {name: one(name) for name in names}}


def rand():
    loaded = module("randaugment")
    names = list(loaded.RandAugment().level_map)

    def one(name):
        def call(level, said):
            policy = loaded.RandAugment(magnitude=level, fillcolor=(1, 2, 3))
            policy.func[name](said, policy.level_map[name])

        return table(loaded, range(11), call)

    return {"names": names, "ops": {name: one(name) for name in names}}


def timm():
    loaded = module("timm_autoaugment")
    plain, increasing = list(loaded._RAND_TRANSFORMS), list(loaded._RAND_INCREASING_TRANSFORMS)
    weights = [loaded._RAND_CHOICE_WEIGHTS_0[name] for name in plain]
    hparams = {"img_mean": (124, 116, 104), "interpolation": 3}
    levels = list(range(11)) + [0.04, 2.5, 4.9999, 7.3, 9.77]

    def one(name):
        def call(level, said):
            op = loaded.AugmentOp(name, 1.0, level, hparams)
            args = op.level_fn(level, hparams) if op.level_fn else ()
            op.aug_fn(said, *args, **op.kwargs)

        return table(loaded, levels, call)

    return {
        "plain": plain,
        "increasing": increasing,
        "weights": weights,
        "ops": {name: one(name) for name in sorted(set(plain + increasing))},
    }


def augmix():
    loaded = module("functional")
    names = [f.__name__ for f in loaded.augmentations]
    functions = dict(zip(names, loaded.augmentations))
    real = loaded.np

    class Numbers:
        def __init__(self, sign):
            self.random = Fixed(sign)

    def one(name):
        def call(level, said):
            loaded.sample_level = lambda _: level
            loaded.np = Numbers(loaded.random.sign)
            functions[name](said, level)
            loaded.np = real

        return table(loaded, [0.1, 0.35, 0.5, 0.99, 1.0, 2.5, 5.0, 9.999, 10.0], call)

    return {"names": names, "ops": {name: one(name) for name in names}}


def number(value):
    return value.item() if isinstance(value, np.generic) else value


def main(folder):
    if "PADDLECLAS" not in os.environ:
        sys.exit("set PADDLECLAS to the folder ppcls of paddleclas 2.4.0: see this script's head")
    for make in (imagenet, rand, timm, augmix):
        text = json.dumps({"size": [HEIGHT, WIDTH], **make()}, indent=None, default=number)
        (pathlib.Path(folder) / f"{make.__name__}.json").write_text(text + "\n")


main(sys.argv[1])

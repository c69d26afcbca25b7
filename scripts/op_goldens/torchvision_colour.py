"""Makes tests/goldens/torchvision_colour.tar: results of torchvision's colour operations (v2), of
its AugMix and JPEG, and of Pillow's GaussianBlur, for given random numbers.

    torchvision_colour.py OUT

Files and cases are as those of torchvision_ops.py. Operations with `style: pillow`, `jpeg` and
`pillow_gaussian_blur` ran on Pillow images, the others on tensors of bytes. Each `jpeg` is that of
torchvision and of Pillow: both have the same pixels.

The Dirichlet weights of AugMix are drawn as in the recipe's operation, from gamma numbers.

Tolerances. Moved images of AugMix have places in single precision in torch, and in double precision
here. Bilinear levels then differ by 1 now and then, and so do the levels of their sum.
"""

import math
import sys

import numpy as np
import torch
import torchvision_ops as ops
from PIL import Image, ImageFilter
from torchvision.transforms import v2
from torchvision.transforms.v2 import _augment, _auto_augment, _color
from torchvision.transforms.v2.functional import _misc
from torchvision.transforms.v2 import functional as F

ODD, LARGE, TINY, ONE, FLAT = ops.ODD, ops.LARGE, ops.TINY, ops.ONE, ops.FLAT


class Drawn(ops.Listed):
    """Replaces torch."""

    def rand(self, *size):
        return torch.tensor(self.next()) if size == ((),) else super().rand(*size)

    def randint(self, *bounds, low=None, high=None, size=None):
        numbers = [b for b in bounds if isinstance(b, int)]
        if high is None:
            low, high = numbers if len(numbers) == 2 else (0, numbers[0])
        return torch.tensor(low + int(self.next() * (high - low)))

    def randn_like(self, image, dtype=None):
        key = int(self.next() * (1 << 53))
        channels, height, width = image.shape
        elements = np.arange(image.numel(), dtype=np.uint64).reshape(height, width, channels)
        return torch.from_numpy(normals(key, elements).transpose(2, 0, 1).copy())

    def _sample_dirichlet(self, alphas):
        logs = [gamma_log(float(alpha), self.next) for alpha in alphas.flatten()]
        shares = [math.exp(log - max(logs)) for log in logs]
        shares = [share / sum(shares) for share in shares]
        return torch.tensor(shares, dtype=torch.float32).reshape(alphas.shape)


def normals(key, elements):
    """`normal_numbers.rs`, in double precision and then rounded."""
    z = np.uint64(key) + (elements + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    radius = ((z >> np.uint64(32)).astype(np.float64) + 0.5) / 2**32
    angle = (z & np.uint64(0xFFFFFFFF)).astype(np.float64) / 2**32
    return (np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * angle)).astype(np.float32)


def gauss(draw):
    angle = draw() * 2 * math.pi
    return math.cos(angle) * math.sqrt(-2 * math.log(1 - draw()))


def gamma_log(shape, draw):
    """`ln_gamma_variate` of the recipe's policies."""
    boosted = shape + 1 if shape < 1 else shape
    d = boosted - 1 / 3
    c = 1 / math.sqrt(9 * d)
    log = math.log(d)
    for _ in range(64):
        x, u = gauss(draw), None
        u = 1 - draw()
        root = 1 + c * x
        if root <= 0:
            continue
        v, log_v = root**3, 3 * math.log(root)
        if math.log(u) <= 0.5 * x * x + d - d * v + d * log_v:
            log += log_v
            break
    return log + math.log(1 - draw()) / shape if shape < 1 else log


def of_blur(params, picture, drawn):
    if drawn.next() >= params.get("p", 1.0) and params.get("p", 1.0) < 1:
        return picture
    low, high = params["radius"]
    return picture.filter(ImageFilter.GaussianBlur(low + (high - low) * drawn.next()))


def of_jpeg(params, picture, drawn):
    transform = v2.JPEG(params["quality"])
    number = drawn.numbers[0]
    tensor = transform(F.pil_to_tensor(picture))
    drawn.numbers.insert(0, number)
    pillow = transform(picture)
    assert (np.asarray(F.to_pil_image(tensor)) == np.asarray(pillow)).all(), "Pillow differs"
    return pillow


AUG_MIX = {"severity": "severity", "width": "mixture_width", "alpha": "alpha"}
AUG_MIX |= {"all_ops": "all_ops", "interpolation": "interpolation", "fill": "fill"}


def of_aug_mix(params, picture, drawn):
    named = {AUG_MIX[name]: value for name, value in params.items() if name != "depth"}
    depth = params.get("depth", "random")
    transform = v2.AugMix(**named, chain_depth=-1 if depth == "random" else depth)
    # torchvision's own method, which a test may replace.
    transform._sample_dirichlet = drawn._sample_dirichlet
    return F.to_pil_image(transform(F.pil_to_tensor(picture)))


def of_class(kind):
    def run(params, picture, drawn):
        params = dict(params)
        if params.pop("style", "tensor") == "pillow":
            return kind(**params)(picture)
        return F.to_pil_image(kind(**params)(F.pil_to_tensor(picture)))

    return run


RUN = {
    "pillow_gaussian_blur": of_blur,
    "jpeg": of_jpeg,
    "torchvision_aug_mix": of_aug_mix,
    "random_photometric_distort": of_class(v2.RandomPhotometricDistort),
    "random_channel_permutation": of_class(v2.RandomChannelPermutation),
    "gaussian_noise": of_class(v2.GaussianNoise),
}


class Goldens(ops.Goldens):
    def add(self, op, numbers, picture, **tolerance):
        """Adds a case, with as many of the numbers as it draws."""
        ((name, params),) = op.items()
        drawn = Drawn(numbers)
        modules = (_augment, _auto_augment, _color, _misc)
        for module in modules:
            module.torch = drawn
        try:
            out = np.asarray(RUN[name](params, Image.fromarray(picture), drawn))
        finally:
            for module in modules:
                module.torch = torch
        self.cases.append(
            {
                "op": op,
                "numbers": numbers[: len(numbers) - len(drawn.numbers)],
                "size": picture.shape[:2],
                "becomes": out.shape[:2],
                "input": self.keep(picture),
                "expected": self.keep(out),
                **tolerance,
            }
        )


def blurs(goldens):
    seed = 0
    sizes = (ODD, LARGE, TINY, ONE, FLAT, (34, 5), (5, 34), (18, 49))
    for radius in (0.01, 0.1, 0.5, 0.7071, 1.0, 1.37, 2.0, 3.3, 8.0, 25.0, 90.0, 0.0):
        for size in sizes:
            seed += 1
            op = {"pillow_gaussian_blur": {"radius": [radius, radius]}}
            goldens.add(op, [0.5, 0.5], ops.noise(size, seed))
    for numbers in ops.parts(1, 8), ops.parts(2, 8), [0.5, 0.25], [0.49, 0.25]:
        op = {"pillow_gaussian_blur": {"radius": [0.1, 2.0], "p": 0.5}}
        goldens.add(op, numbers, ops.soft(LARGE, 7))


def jpegs(goldens):
    seed = 100
    for size in (ODD, LARGE, TINY, ONE, FLAT, (16, 16), (33, 18), (6, 5), (15, 48)):
        for quality in ([1, 1], [17, 17], [50, 50], [75, 75], [96, 96], [100, 100], [10, 90]):
            for picture in (ops.noise(size, seed), ops.soft(size, seed)):
                seed += 1
                goldens.add({"jpeg": {"quality": quality}}, ops.parts(seed, 1), picture)


def distortions(goldens):
    seed = 500
    for style in ("tensor", "pillow"):
        for size in (ODD, LARGE, TINY, ONE):
            for p in (1.0, 0.5, 0.5, 0.2):
                for picture in (ops.noise(size, seed), ops.soft(size, seed)):
                    seed += 1
                    op = {"random_photometric_distort": {"p": p, "style": style}}
                    goldens.add(op, ops.parts(seed, 12), picture, **HUE)
    wide = {"brightness": [0, 3], "contrast": [0, 3], "saturation": [0, 4], "hue": [-0.5, 0.5], "p": 0.7}
    for _ in range(8):
        seed += 1
        op = {"random_photometric_distort": wide}
        goldens.add(op, ops.parts(seed, 12), ops.noise(ODD, seed), **HUE)
    for seed in range(8):
        goldens.add({"random_channel_permutation": {}}, ops.parts(seed, 2), ops.noise(ODD, seed))


def noises(goldens):
    seed = 700
    for params in ({}, {"sigma": 0.5}, {"mean": 0.2, "sigma": 0.02}, {"clip": False, "sigma": 0.3}, {"sigma": 0.0}):
        for size in (ODD, LARGE, TINY, ONE):
            seed += 1
            goldens.add({"gaussian_noise": params}, ops.parts(seed, 1), ops.noise(size, seed))


def aug_mixes(goldens):
    seed = 800
    # Without steps that move pixels.
    still = [{"all_ops": all_ops, "interpolation": "nearest"} for all_ops in (True, False)]
    looks = [*still, {}, {"severity": 10}, {"severity": 7, "width": 5, "depth": 2, "alpha": 0.4}]
    looks += [{"severity": 10, "fill": [10, 200, 30]}, {"severity": 9, "width": 1, "depth": 1}]
    for look in looks:
        for size in (ODD, LARGE, TINY, ONE):
            for picture in (ops.noise(size, seed), ops.soft(size, seed)):
                seed += 1
                tolerance = MOVED if look.get("interpolation") != "nearest" else NEAREST
                if size == ONE:
                    tolerance = {**tolerance, "share": 1.0}
                numbers = ops.parts(seed, 400)
                goldens.add({"torchvision_aug_mix": look}, numbers, picture, **tolerance)


# Tensors' hue, whose last bit depends on the processor.
HUE = {"most": 1, "share": 0.02}
MOVED = {"most": 1, "share": 0.04}
# A place just between two pixels, of a whole row if it is sheared.
NEAREST = {"most": 255, "share": 0.08}


def main():
    goldens = Goldens(sys.argv[1])
    for part in (blurs, jpegs, distortions, noises, aug_mixes):
        part(goldens)
    goldens.write()
    print(f"{len(goldens.cases)} cases")


if __name__ == "__main__":
    main()

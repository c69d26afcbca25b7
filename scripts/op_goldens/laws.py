"""Makes tests/goldens/laws.tar: sizes, places and boxes of random operations, by the
arithmetic of PaddleClas and torchvision, for given sizes and given random numbers.

    laws.py OUT

OUT/cases.json  lists of cases, each a list; sizes are height, width:
  shorter   side, image, size of the result (`rounding: nearest`)
  longer    the same for the longer side
  center    size, image, [top, left] rounded to the nearest (halves to the even
            number), and [top, left] rounded down
  bounded   image, scale, ratio, whether the ratio's logarithm is uniform, four
            random numbers, box (left, top, width, height)
  erasing   image, scale, ratio, log, attempts, random numbers from the first
            area on, box or null

Random numbers are in units of 1/65,536. An integer up to n is the random number times
n + 1, rounded down. Needs only Python.
"""

import json
import math
import random
import sys
from pathlib import Path

SIZES = [(1, 1), (2, 3), (7, 500), (99, 101), (101, 99), (255, 256), (333, 500), (375, 500)]
SIZES += [(480, 640), (500, 375), (427, 640), (767, 1023), (997, 991), (1080, 1920)]
SIZES += [(3024, 4032), (35, 2)]


class Numbers:
    """Replaces the module `random` with the numbers of a list."""

    def __init__(self, drawn):
        self.left = [n / 65536 for n in drawn]

    def uniform(self, low, high):
        return low + (high - low) * self.left.pop(0)

    def randint(self, low, high):
        return low + int(self.left.pop(0) * (high - low + 1))


def by_factor(factor, size):
    return [max(1, int(round(side * factor))) for side in size]


def bounded(size, scale, ratio, log, numbers):
    height, width = size
    if log:
        aspect = math.exp(numbers.uniform(math.log(ratio[0]), math.log(ratio[1])))
    else:
        aspect = numbers.uniform(*ratio)
    root = math.sqrt(aspect)
    w, h = 1.0 * root, 1.0 / root
    bound = min((width / height) / (w**2), (height / width) / (h**2))
    area = width * height * numbers.uniform(min(scale[0], bound), min(scale[1], bound))
    side = math.sqrt(area)
    w, h = max(1, int(side * w)), max(1, int(side * h))
    left = numbers.randint(0, width - w)
    top = numbers.randint(0, height - h)
    return [left, top, w, h]


def erasing(size, scale, ratio, log, attempts, numbers):
    height, width = size
    ends = (math.log(ratio[0]), math.log(ratio[1])) if log else ratio
    for _ in range(attempts):
        area = numbers.uniform(*scale) * height * width
        aspect = numbers.uniform(*ends)
        if log:
            aspect = math.exp(aspect)
        h = int(round(math.sqrt(area * aspect)))
        w = int(round(math.sqrt(area / aspect)))
        # A box that is empty or does not fit is drawn again.
        if 1 <= w < width and 1 <= h < height:
            top = numbers.randint(0, height - h)
            left = numbers.randint(0, width - w)
            return [left, top, w, h]
    return None


def main():
    rng = random.Random(17)
    drawn = lambda n: [rng.getrandbits(16) for _ in range(n)]
    cases = {"shorter": [], "longer": [], "center": [], "bounded": [], "erasing": []}
    for side in (1, 36, 121, 173, 224, 232, 256, 292, 438):
        for size in SIZES:
            cases["shorter"].append([side, size, by_factor(side / min(size), size)])
            cases["longer"].append([side, size, by_factor(side / max(size), size)])
    for size in [(10, 7), (11, 8), (224, 224), (1, 1)]:
        for more in [(0, 0), (1, 1), (2, 3), (3, 2), (5, 7), (32, 75)]:
            picture = [size[0] + more[0], size[1] + more[1]]
            nearest = [int(round(m / 2.0)) for m in more]
            cut = [m // 2 for m in more]
            cases["center"].append([size, picture, nearest, cut])
    for size in SIZES:
        for scale, ratio in [
            ((0.08, 1.0), (3 / 4, 4 / 3)),
            ((1.0, 1.0), (1.0, 1.0)),
            ((0.3, 0.9), (0.1, 12.0)),
        ]:
            for log in (False, True):
                for _ in range(2):
                    numbers = drawn(4)
                    box = bounded(size, scale, ratio, log, Numbers(numbers))
                    cases["bounded"].append([size, scale, ratio, log, numbers, box])
        for scale, ratio, attempts in [
            ((0.02, 0.4), (0.3, 1 / 0.3), 3),
            ((0.5, 1.0), (0.05, 20.0), 5),
        ]:
            for log in (False, True):
                numbers = drawn(2 * attempts + 2)
                box = erasing(size, scale, ratio, log, attempts, Numbers(numbers))
                cases["erasing"].append([size, scale, ratio, log, attempts, numbers, box])
    lists = [
        f'"{name}": [\n' + ",\n".join(json.dumps(case) for case in some) + "\n]"
        for name, some in cases.items()
    ]
    Path(sys.argv[1], "cases.json").write_text("{\n" + ",\n".join(lists) + "\n}\n")
    print(f"{sum(map(len, cases.values()))} cases")


if __name__ == "__main__":
    main()

"""CPU seconds of executables for the same work, in turns: PHOTOS NAME=EXECUTABLE...

Two epochs with two workers, four turns. Prints the least and the median of the user time.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HEAD = """featherload: 1
ops:
  - decode: {color: rgb, background: white}
  - random_resized_crop: {size: 224, scale: [0.08, 1.0]}
  - random_horizontal_flip: {p: 0.5}
"""
TAIL = """  - normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}
  - cast: {dtype: f16}
  - layout: {layout: nchw}
"""
JITTER = "  - color_jitter: {brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}\n"
POLICY = "  - rand_augment: {}\n  - gaussian_blur: {kernel_size: 9, sigma: [0.1, 2.0]}\n"
COVER = """featherload: 1
ops:
  - decode: {color: rgb, background: white}
  - cover_crop: {size: 256}
  - cast: {dtype: f16}
  - layout: {layout: nchw}
"""


def user_seconds(executable: str, photos: str, recipe: Path) -> float:
    command = [executable, "bench", photos, "--labels", "none", "--recipe", str(recipe)]
    command += ["--batch-size", "50", "--num-workers", "2", "--epochs", "2", "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True, capture_output=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main(photos: str, *named: str) -> None:
    executables = dict(one.split("=", 1) for one in named)
    recipes = {"crop": HEAD + TAIL, "jitter": HEAD + JITTER + TAIL, "policy": HEAD + POLICY + TAIL}
    recipes["cover_crop"] = COVER
    seconds: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for recipe, text in recipes.items():
            (Path(folder) / f"{recipe}.yaml").write_text(text)
        for _ in range(4):
            for recipe in recipes:
                for name, executable in executables.items():
                    taken = user_seconds(executable, photos, Path(folder) / f"{recipe}.yaml")
                    seconds.setdefault((recipe, name), []).append(taken)
    for recipe in recipes:
        for name in executables:
            all_turns = seconds[recipe, name]
            print(f"{recipe} {name} {min(all_turns):.2f} {statistics.median(all_turns):.2f}")


main(*sys.argv[1:])

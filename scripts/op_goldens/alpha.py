"""Makes tests/goldens/alpha.tar: small files with transparency, and the colours that
Pillow reads without alpha (`Image.open(f).convert("RGB")`). For PNG and WebP, OpenCV's
`imread` must read the same colours.

    alpha.py OUT

OUT/in/            the files
OUT/expected.json  for each file: height, width, and the levels of its pixels

Needs NumPy, Pillow with WebP, and OpenCV.
"""

import json
import sys
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

HEIGHT, WIDTH = 5, 7


def main():
    out = Path(sys.argv[1])
    files = out / "in"
    files.mkdir(parents=True, exist_ok=True)
    for old in files.iterdir():
        old.unlink()
    rng = np.random.default_rng(5)
    rgba = rng.integers(0, 256, (HEIGHT, WIDTH, 4), dtype=np.uint8)
    # Alpha 255 in one row, 0 in another, and any values in the rest.
    rgba[0, :, 3], rgba[1, :, 3] = 255, 0
    picture = Image.fromarray(rgba)
    picture.save(files / "rgba.png")
    picture.save(files / "rgba.webp", lossless=True, exact=True)
    picture.save(files / "rgba.tiff")
    picture.save(files / "rgba.tga")
    grey = Image.fromarray(np.ascontiguousarray(rgba[..., [0, 3]]), mode="LA")
    grey.save(files / "la.png")
    Image.fromarray(rgba[..., 1]).save(files / "grey_key.png", transparency=int(rgba[2, 2, 1]))
    Image.fromarray(rgba[..., :3]).save(
        files / "rgb_key.png", transparency=tuple(int(v) for v in rgba[3, 3, :3])
    )
    deep = rng.integers(0, 65536, (HEIGHT, WIDTH, 4), dtype=np.uint16)
    cv2.imwrite(str(files / "rgba16.png"), deep)
    palette = Image.fromarray(rng.integers(0, 6, (HEIGHT, WIDTH), dtype=np.uint8), mode="P")
    palette.putpalette(rng.integers(0, 256, 18, dtype=np.uint8).tobytes())
    palette.save(files / "palette.png", transparency=bytes([255, 0, 128, 7, 200, 255]))
    palette.save(files / "palette.gif", transparency=3)
    expected = {}
    for file in sorted(files.iterdir()):
        rgb = np.asarray(Image.open(file).convert("RGB"))
        if file.suffix in (".png", ".webp"):
            theirs = cv2.imread(str(file), cv2.IMREAD_COLOR)[..., ::-1]
            assert np.array_equal(theirs, rgb), file
        height, width = rgb.shape[:2]
        expected[file.name] = {"height": height, "width": width, "rgb": rgb.flatten().tolist()}
    lines = [f"{json.dumps(name)}: {json.dumps(of)}" for name, of in expected.items()]
    (out / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(expected)} files")


if __name__ == "__main__":
    main()

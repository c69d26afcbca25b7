"""One million pairs of path and label: seconds to a built loader, and its memory.

    million.py PHOTO

Needs featherload. Only the first paths are of files.
"""

from __future__ import annotations

import json
import os
import sys
import time

import turns

import featherload

COUNT = 1_000_000


def main() -> None:
    photo = os.path.abspath(sys.argv[1])
    # Paths of 40 to 50 bytes, as in ImageNet.
    pairs = [(f"/data/imagenet/train/n{n % 1000:08}/n{n:08}.JPEG", n % 1000) for n in range(COUNT)]
    pairs[:4096] = [(photo, n) for n in range(4096)]
    text = sum(len(path) for path, _ in pairs)
    before = turns.pss_mib(os.getpid())[1]
    start = time.monotonic()
    loader = featherload.Loader(pairs, "eval224", 4, 1, shuffle=False)
    built = time.monotonic() - start
    next(iter(loader))
    first = time.monotonic() - start
    held = (turns.pss_mib(os.getpid())[1] - before) * 2**20
    rows = loader.batch_size * 4 * 224 * 224 * 3 * 4
    result = {
        "items": COUNT,
        "bytes_of_paths": text,
        "seconds_to_a_built_loader": round(built, 2),
        "seconds_to_the_first_batch": round(first, 2),
        "bytes_an_item_beside_the_paths": round((held - text - rows) / COUNT, 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

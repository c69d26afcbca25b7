"""Makes JSON lines of N captions: make_captions.py PHOTOS N OUT."""

import os
import sys

photos = sorted(os.listdir(sys.argv[1]))
count, out = int(sys.argv[2]), sys.argv[3]
nouns = (
    "photo dog cat house tree river mountain city street sky cloud boat road field garden".split()
)
words = "a of red blue small large".split() + nouns
with open(out, "w") as file:
    for row in range(count):
        pairs = [
            f"{words[(row * 7 + k * 3) % len(words)]} {words[(row + k * 5) % len(words)]}"
            for k in range(6)
        ]
        name, caption = photos[row % len(photos)], ", ".join(pairs)
        file.write(f'{{"file_name": "{name}", "caption": "{caption}"}}\n')

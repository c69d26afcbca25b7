"""One million samples in ten tars: million.py FOLDER

Each sample is a JPEG of 8 x 8 grey levels and a class of ten thousand; keys as
webdataset's writers number them.
"""

import io
import sys
from pathlib import Path

from PIL import Image

SAMPLES, SHARDS = 1_000_000, 10


def header(name: bytes, size: int) -> bytes:
    block = bytearray(512)
    block[0 : len(name)] = name
    block[100:108] = b"0000644\0"
    block[108:116] = block[116:124] = b"0000000\0"
    block[124:136] = b"%011o\0" % size
    block[136:148] = b"00000000000\0"
    block[148:156] = b" " * 8
    block[156:157] = b"0"
    block[257:265] = b"ustar\0" + b"00"
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    picture = io.BytesIO()
    Image.new("L", (8, 8), 77).save(picture, "JPEG")
    picture = picture.getvalue()
    padded = picture + bytes(-len(picture) % 512)
    for shard in range(SHARDS):
        with open(folder / f"tiny-{shard:06}.tar", "wb", buffering=4 << 20) as file:
            for number in range(SAMPLES // SHARDS * shard, SAMPLES // SHARDS * (shard + 1)):
                label = b"%d" % (number % 10_000)
                file.write(header(b"%09d.jpg" % number, len(picture)))
                file.write(padded)
                file.write(header(b"%09d.cls" % number, len(label)))
                file.write(label + bytes(512 - len(label)))
            file.write(bytes(1024))


main()

"""Random access to a column of 200,000 captions: from a cache with columns, Arrow and Parquet.

    python columns.py FOLDER [ROWS]

FOLDER gets the data sets, once. Each round reads the captions of 256 random rows of each data set,
in turn, so that a busy machine slows all of them. Prints the median, the quartiles, and the private
memory that all rounds together have added to this process.
"""

from __future__ import annotations

import io
import statistics
import sys
import time
from pathlib import Path

import featherload
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from PIL import Image

folder, rows = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200_000
ROUNDS = 41


def sets() -> dict[str, Path]:
    folder.mkdir(exist_ok=True)
    file = io.BytesIO()
    Image.new("RGB", (20, 16), (9, 99, 199)).save(file, "JPEG")
    arrow, pages, groups = (
        folder / name for name in ("a.arrow", "p.parquet", "g.parquet")
    )
    if not groups.exists():
        images = pa.array([file.getvalue()] * rows, pa.binary())
        captions = pa.array(
            [
                f"a caption with the number {i:07} and sixty bytes of text"
                for i in range(rows)
            ]
        )
        table = pa.table({"image": images, "caption": captions})
        pyarrow.feather.write_feather(
            table, arrow, compression="uncompressed", chunksize=1000
        )
        pyarrow.parquet.write_table(table, pages)
        pyarrow.parquet.write_table(table, groups, row_group_size=1000)
    began = time.perf_counter()
    featherload.cache.build(
        pages, folder / "cache", columns=["caption"], progress=False
    )
    print(f"cache built in {time.perf_counter() - began:.1f} s")
    return {
        "cache with columns": folder / "cache",
        "Arrow, 1,000 rows a record batch": arrow,
        "Parquet, row groups of 1,000 rows": groups,
        "Parquet, pyarrow's defaults": pages,
    }


def private() -> int:
    with open("/proc/self/smaps_rollup") as lines:
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private"))


recipe = {"ops": [{"resize": {"size": [8, 8]}}]}
loaders = {
    name: featherload.Loader(
        path, recipe, 256, 1, seed=5, columns=["caption"], epochs=1
    )
    for name, path in sets().items()
}
epochs = {name: iter(loader) for name, loader in loaders.items()}
took: dict[str, list[float]] = {name: [] for name in loaders}
grown = dict.fromkeys(loaders, 0)
for number in range(ROUNDS):
    for name, epoch in epochs.items():
        batch = next(epoch)
        before, began = private(), time.perf_counter()
        captions = batch["caption"]
        took[name].append(1e3 * (time.perf_counter() - began))
        assert len(captions) == 256 and all(len(text) > 50 for text in captions)
        del captions
        grown[name] += private() - before if number else 0
for name, ms in took.items():
    low, median, high = statistics.quantiles(ms[1:], n=4)
    print(
        f"{name:36} {median:7.2f} ms ({low:.2f} to {high:.2f}), {grown[name]} KiB more"
    )

"""Makes tests/goldens/object_columns.tar: columns of objects as pyarrow writes and reads them.

    object_columns.py OUT

OUT/NAME.parquet, OUT/NAME.arrow  files of one table: images of a few bytes, numbers of images, and
                                  objects, as a struct of lists or as a list of structs
OUT/many.parquet                  a row of five million categories in a few bytes
OUT/expected.json                 for each file the rows of its objects, as pyarrow reads them. A side
                                  that is not a number is null

Pages and record batches are short, so that rows lie in several of them. Rows are missing, empty and
long, and so are the lists inside. Needs pyarrow.
"""

import json
import math
import random
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 40
NAMES = ["ant", "bee", "cat"]


def objects(draw, count):
    """The fields of objects, with a missing entry here and there."""

    def some(value):
        return None if draw.random() < 0.08 else value

    # Quarters are exact in single precision.
    sides = [[draw.randrange(1, 400) / 4 for _ in range(4)] for _ in range(count)]
    for at in range(count):
        if draw.random() < 0.05:
            sides[at] = draw.choice([None, [float("nan"), 1.0, 2.0, 3.0]])
    return {
        "id": [some(draw.randrange(1 << 40)) for _ in range(count)],
        "area": [some(draw.randrange(1, 4000) / 4) for _ in range(count)],
        "bbox": sides,
        "category": [draw.randrange(len(NAMES)) for _ in range(count)],
        "iscrowd": [draw.random() < 0.2 for _ in range(count)],
    }


def table(form, fixed, names):
    """`form`: lists or structs. `fixed`: boxes are lists of fixed size. `names`: categories are
    texts."""
    draw = random.Random(7)
    box = pa.list_(pa.float32(), 4) if fixed else pa.list_(pa.float64())
    kinds = {
        "id": pa.int64(),
        "area": pa.float64(),
        "bbox": box,
        "category": pa.string() if names else pa.int64(),
        "iscrowd": pa.bool_(),
    }
    rows = []
    for row in range(ROWS):
        count = 120 if row == 11 else draw.choice([0, 0, 1, 2, 5, 9])
        fields = objects(draw, count)
        if fixed:
            # A list of fixed size has numbers also where it is missing.
            fields["bbox"] = [sides or [0.0, 0.0, 0.0, 0.0] for sides in fields["bbox"]]
        if names:
            fields["category"] = [NAMES[label] for label in fields["category"]]
        if form == "structs":
            found = [dict(zip(fields, each, strict=True)) for each in zip(*fields.values())]
            rows.append(None if row == 4 else found)
        else:
            rows.append(None if row == 4 else fields)
    if form == "structs":
        kind = pa.list_(pa.struct(list(kinds.items())))
    else:
        kind = pa.struct([(name, pa.list_(of)) for name, of in kinds.items()])
    features = {name: {"dtype": "x", "_type": "Value"} for name in kinds}
    if not names:
        features["category"] = {"names": NAMES, "_type": "ClassLabel"}
    if form == "structs":
        feature = {"feature": features, "_type": "List"}
    else:
        feature = {name: {"feature": of, "_type": "List"} for name, of in features.items()}
    image = {"_type": "Image"}
    note = {"info": {"features": {"image": image, "objects": feature}}}
    columns = {
        "image_id": pa.array(range(1000, 1000 + ROWS), pa.int64()),
        "image": pa.array([f"picture {row}".encode() for row in range(ROWS)]),
        "objects": pa.array(rows, kind),
    }
    made = pa.table(columns)
    return made.replace_schema_metadata({"huggingface": json.dumps(note)})


def plain(value):
    """The same without NaN, which is no JSON."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def many():
    """A list of so many equal categories that a page of them has a few bytes."""
    count = 5_000_000
    categories = pa.ListArray.from_arrays([0, count], pa.array([1] * count, pa.int64()))
    boxes = pa.array([[]], pa.list_(pa.list_(pa.float64())))
    objects = pa.StructArray.from_arrays([boxes, categories], ["bbox", "category"])
    return pa.table({"image": [b"picture"], "objects": objects})


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    expected = {}

    def keep(name, made):
        rows = made.column("objects").to_pylist()
        expected[name] = [plain(row) for row in rows]

    parquets = {
        "lists": (("lists", False, False), {}),
        "lists-fixed": (("lists", True, False), {"compression": "zstd"}),
        "structs": (("structs", False, False), {"compression": "none"}),
        "structs-names": (("structs", True, True), {"use_dictionary": False}),
        "lists-v2": (("lists", False, True), {"data_page_version": "2.0"}),
        "structs-one-page": (("structs", False, False), {"data_page_size": 1 << 20}),
    }
    for name, (form, options) in parquets.items():
        made = table(*form)
        options = {"data_page_size": 300, "write_batch_size": 8, **options}
        pq.write_table(made, out / f"{name}.parquet", row_group_size=15, **options)
        keep(f"{name}.parquet", made)
    arrows = {
        "lists": ("lists", False, False),
        "structs": ("structs", True, False),
        "structs-names": ("structs", False, True),
    }
    for name, form in arrows.items():
        made = table(*form)
        codec = "lz4" if name == "structs-names" else None
        options = pa.ipc.IpcWriteOptions(compression=codec)
        new = pa.ipc.new_stream if name == "lists" else pa.ipc.new_file
        with new(str(out / f"{name}.arrow"), made.schema, options=options) as writer:
            writer.write_table(made, max_chunksize=11)
        keep(f"{name}.arrow", made)
    whole = {"data_page_size": 1 << 30, "write_batch_size": 1 << 30}
    pq.write_table(many(), out / "many.parquet", **whole)
    (out / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()

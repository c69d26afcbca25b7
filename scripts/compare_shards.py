"""Compares how featherload, webdataset and DALI read each other's WebDataset shards.

    compare_shards.py FEATHERLOAD [--dali]

Prints a line for each comparison. The first difference ends it with exit status 1.
"""

import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import webdataset
from PIL import Image

SAMPLES = 37


def main():
    featherload, dali = sys.argv[1], "--dali" in sys.argv[2:]

    def run(*args):
        done = subprocess.run([featherload, *map(str, args)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"featherload {' '.join(map(str, args))}: {done.stderr}")
        return done.stdout

    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        os.environ["XDG_CACHE_HOME"] = str(folder)
        source = folder / "source"
        run("demo", source, "--images", SAMPLES, "--classes", 3)
        for encode in ("copy", "jpeg:90", "raw"):
            cache = folder / encode.replace(":", "-")
            run("cache", "build", source, cache, "--encode", encode, "--shard-size", "1MiB")
            ours_read_by_others(source, cache, encode, dali)
        theirs_read_here(source, folder / "theirs", run)


def ours_read_by_others(source, cache, encode, dali):
    shards = sorted(map(str, cache.glob("*.tar")))
    assert len(shards) > 1, f"{encode}: only one shard, so their order is not tested: use a smaller --shard-size"
    pictures = sorted(path for path in source.glob("*/*") if path.suffix == ".jpg")
    classes = sorted(path.name for path in source.iterdir() if path.is_dir())
    extension = {"raw": "npy"}.get(encode, "jpg")
    read = list(webdataset.WebDataset(shards, shardshuffle=False, empty_check=False))
    assert len(read) == len(pictures) == SAMPLES, (len(read), len(pictures))
    for number, (sample, path) in enumerate(zip(read, pictures)):
        key, payload = sample["__key__"], sample[extension]
        assert key == f"{number:08}_{path.stem}", key
        label = int(sample["cls"])
        assert label == classes.index(path.parent.name), (key, label)
        whole = numpy.asarray(Image.open(path).convert("RGB"))
        match encode:
            case "copy":
                assert payload == path.read_bytes(), key
            case "raw":
                assert (numpy.load(io.BytesIO(payload)) == whole).all(), key
            case _:
                ours = numpy.asarray(Image.open(io.BytesIO(payload)).convert("RGB"))
                assert ours.shape == whole.shape, (key, ours.shape)
                # The loss of this quality must not exceed that of Pillow's encoder.
                pillow = io.BytesIO()
                Image.fromarray(whole).save(pillow, "JPEG", quality=90, subsampling="4:2:0")
                pillow = numpy.asarray(Image.open(pillow))
                cost = [numpy.abs(made.astype(int) - whole).mean() for made in (ours, pillow)]
                assert cost[0] <= 1.01 * cost[1] + 0.01, (key, cost)
    print(f"webdataset {webdataset.__version__}: {len(read)} samples of {encode} equal the source")
    if dali:
        read_by_dali(shards, extension, encode, read)


def read_by_dali(shards, extension, encode, expected):
    import nvidia.dali as dali

    @dali.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline():
        return tuple(
            dali.fn.readers.webdataset(
                paths=shards,
                index_paths=[shard.removesuffix("tar") + "idx" for shard in shards],
                ext=[extension, "cls"],
                missing_component_behavior="error",
            )
        )

    built = pipeline()
    built.build()
    for sample in expected:
        payload, label = (out.at(0).tobytes() for out in built.run())
        assert payload == sample[extension], sample["__key__"]
        assert label == sample["cls"], sample["__key__"]
    print(f"DALI {dali.__version__}: {len(expected)} samples of {encode} equal those of webdataset")
    # A script of DALI's wheel.
    wds2idx = next(
        script
        for folder in [Path(sys.executable).parent, *(Path(p) / "bin" for p in sys.path)]
        if (script := folder / "wds2idx").exists()
    )
    for shard in shards:
        theirs = Path(shard).with_suffix(".theirs")
        subprocess.run([sys.executable, wds2idx, shard, theirs], check=True, capture_output=True)
        ours = Path(shard).with_suffix(".idx")
        assert ours.read_text() == theirs.read_text(), f"{ours} differs from the index of wds2idx"
        theirs.unlink()
    print(f"DALI {dali.__version__}: {len(shards)} indexes of {encode} equal those of wds2idx")


def theirs_read_here(source, folder, run):
    """Compares a run over shards of webdataset with a run over a list of the same files. Their
    digests, of ids, labels and pixels, must be equal."""
    folder.mkdir()
    pictures = sorted(source.glob("*/*.jpg"))
    lines = []
    with webdataset.ShardWriter(str(folder / "it-%06d.tar"), maxcount=10, verbose=0) as shards:
        for number, path in enumerate(pictures):
            # Some keys exceed the name field of a tar header, and need a long name of GNU or pax.
            key = f"{path.parent.name}/{number:05}" + "-long" * (30 * (number % 3))
            sample = {"__key__": key, "txt": "a picture", "cls": number % 7}
            sample["json"] = {"objects": [{"label": number % 5}]}
            sample["jpg" if number % 2 else "jpeg"] = path.read_bytes()
            shards.write(sample)
            lines.append((path, number % 7, number % 5))
    run_options = ["--batch-size", 8, "--epochs", 1, "--no-shuffle", "--digest", "--json"]
    run_options += ["--recipe", "eval224", "--dtype", "u8"]
    last = (len(pictures) - 1) // 10
    for field, labels in ((1, ()), (2, ("--label-json", "json:/objects/0/label"))):
        listed = folder / "list.txt"
        listed.write_text("".join(f"{line[0]} {line[field]}\n" for line in lines))
        want = json.loads(run("bench", listed, "--allow-outside", *run_options))["digest"]
        for pattern in (f"it-{{000000..{last:06}}}.tar", "it-*.tar"):
            for workers in (0, 1, 2):
                how = ["--num-workers", workers, *labels, *run_options]
                found = run("bench", folder / pattern, *how)
                assert json.loads(found)["digest"] == want, (pattern, workers, labels)
        what = "JSON labels" if labels else "cls labels"
        print(f"featherload: {len(pictures)} samples of webdataset, {what}: the digest of the files")


main()

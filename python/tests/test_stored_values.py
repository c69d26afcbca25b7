"""Values that a trainer stores for samples, and runs without images that read them."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import need
from conftest import png as write_png

import featherload
from featherload import samplers
from featherload.cache import Stored, Writer

Make = Callable[..., featherload.Loader]

IMAGES = 37
# The crop of a sample follows from seed, epoch and position.
RANDOM = {
    "featherload": 1,
    "ops": [{"random_resized_crop": {"size": [12, 16]}}, {"cast": {"dtype": "u8"}}],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("images")
    for number in range(IMAGES):
        height, width = 40 + number * 37 % 60, 40 + number * 53 % 60
        rows, columns = np.mgrid[0:height, 0:width].astype(np.uint8)
        pixels = np.stack([rows, columns, np.full_like(rows, number)], axis=-1)
        (made / f"{number:02}.png").write_bytes(write_png(pixels))
        (made / f"{number:02}.txt").write_text(f"image {number}")
    return made


def latents(images: Any) -> npt.NDArray[np.float32]:
    """Values that tell the crop: the means of the colours in each quarter."""
    halves = np.asarray(images, np.float32).reshape(len(images), 3, 2, 6, 2, 8)
    means: npt.NDArray[np.float32] = halves.mean(axis=(3, 5))
    return means


def store(
    made: featherload.Loader, folder: Path, epochs: int = 1, **options: Any
) -> dict[Any, Any]:
    """Stores the latents of all samples. Returns them by epoch and sample."""
    known = {}
    with Writer(folder, made, **options) as writer:
        for _ in range(epochs):
            for batch in made:
                values = latents(batch.images)
                writer.write(batch, latents=values, score=values.mean(axis=(1, 2, 3)))
                for at, row in zip(batch.ids.tolist(), values, strict=True):
                    known[batch.epoch, at] = row
    return known


def read(made: featherload.Loader, name: str = "latents") -> dict[int, Any]:
    """A column of an epoch, by sample."""
    found: dict[int, Any] = {}
    for batch in made:
        for at, row in zip(batch.ids.tolist(), batch[name], strict=True):
            found[at] = np.asarray(row)
    return found


def same(found: dict[int, Any], known: dict[Any, Any], epoch: int = 0) -> None:
    assert sorted(found) == list(range(IMAGES))
    for at, row in found.items():
        assert np.array_equal(row, known[epoch, at]), at


def parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*.safetensors"))


def test_a_later_run_reads_the_values_of_each_sample(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    known = store(loader(folder, recipe=RANDOM, batch_size=5), tmp_path, part_bytes=1)
    assert len(parts(tmp_path)) == 8
    made = loader(
        folder,
        recipe="eval224",
        batch_size=6,
        seed=3,
        columns=["latents", ".txt", "score"],
        captions=".txt",
        stored=tmp_path,
        images=False,
    )
    same(read(made), known)
    same(
        {at: row for at, row in read(made, "score").items()},
        {key: row.mean() for key, row in known.items()},
    )
    for batch in made:
        assert batch.columns == ["latents", ".txt", "score"]
        assert batch["latents"].shape == (len(batch.ids), 3, 2, 2)
        assert batch["latents"].dtype == np.float32
        assert batch.captions == batch[".txt"] == [f"image {at}" for at in batch.ids]


def test_with_images_the_values_are_those_of_the_rows(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    store(loader(folder, recipe=RANDOM, batch_size=5), tmp_path, epochs=2)
    options = {"recipe": RANDOM, "batch_size": 5, "columns": ["latents"], "stored": [tmp_path]}
    # Crops of the same seed and epoch are the same.
    for _ in range(2):
        made = loader(folder, **options, num_workers=1)
        for _ in range(2):
            for batch in made:
                assert np.array_equal(latents(batch.images), batch["latents"])


def test_columns_of_a_list_come_beside_stored_ones(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    items = [
        {"path": folder / f"{number:02}.png", "caption": f"image {number}", "number": number}
        for number in range(IMAGES)
    ]
    known = store(loader(items, recipe=RANDOM, batch_size=5, labels="none"), tmp_path)
    options = {"columns": ["number", "latents"], "captions": "caption", "stored": tmp_path}
    for batch in loader(items, **options, images=False, labels="none"):
        assert batch["number"].tolist() == batch.ids.tolist()
        assert batch.captions == [f"image {number}" for number in batch.ids]
        for at, row in zip(batch.ids.tolist(), batch["latents"], strict=True):
            assert np.array_equal(row, known[0, at])
    plan = featherload.plan(items, **options, images=False, batch_size=4, labels="none")
    assert plan["batches"] == 10


def test_each_epoch_has_a_crop_of_its_own(folder: Path, loader: Make, tmp_path: Path) -> None:
    known = store(loader(folder, recipe=RANDOM, batch_size=5), tmp_path, epochs=2)
    options = {"columns": ["latents"], "images": False, "batch_size": 8}
    made = loader(folder, stored=tmp_path, **options)
    for epoch in (0, 1, 0, 1):
        same(read(made), known, epoch)
    named = loader(folder, stored=Stored(tmp_path, crop="1"), **options)
    for _ in range(2):
        same(read(named), known, 1)
    with pytest.raises(featherload.ConfigError, match="has no crop '7': it has '0', '1'"):
        loader(folder, stored=Stored(tmp_path, crop="7"), **options)


def test_crops_have_names(folder: Path, loader: Make, tmp_path: Path) -> None:
    made = loader(folder, recipe=RANDOM, batch_size=5)
    known: dict[int, Any] = {}
    with Writer(tmp_path, made, crops=["plain", "flipped"]) as writer:
        for batch in made:
            whole = latents(batch.images)
            known |= dict(zip(batch.ids.tolist(), whole.copy(), strict=True))
            assert not writer.has(batch, crop_name="plain")
            assert writer.write(batch, crop_name="plain", latents=whole) == len(batch.ids)
            assert writer.write(batch, crop_name="flipped", latents=whole[..., ::-1]) > 0
            assert writer.has(batch, crop_name="plain")
            with pytest.raises(featherload.ConfigError, match="crop_name None is none of 'plain'"):
                writer.has(batch)
            # It was copied: the trainer's memory may change.
            whole[...] += 1
            # What is stored is not stored again.
            assert writer.write(batch, crop_name="plain", latents=whole) == 0
    options = {"columns": ["latents"], "images": False}
    # A part for each crop, in order of their names' lengths.
    assert len(parts(tmp_path)) == 2
    with pytest.raises(featherload.ConfigError, match="has the crops 'plain', 'flipped': name one"):
        loader(folder, stored=tmp_path, **options)
    # A further crop needs all images.
    made = loader(folder, recipe=RANDOM, batch_size=5)
    with Writer(tmp_path, made, crops=["other"]) as writer:
        stored = sum(writer.write(batch, latents=latents(batch.images)) for batch in made)
    assert stored == IMAGES
    plain = read(loader(folder, stored=Stored(tmp_path, "plain"), **options))
    flipped = read(loader(folder, stored=Stored(tmp_path, "flipped"), **options))
    for at, row in plain.items():
        assert np.array_equal(row, known[at])
        assert np.array_equal(row[..., ::-1], flipped[at])


PROGRAM = """
    import sys
    import numpy as np
    import featherload
    from test_stored_values import RANDOM, latents

    source, folder, batches = sys.argv[1], sys.argv[2], int(sys.argv[3])
    loader = featherload.Loader(source, RANDOM, batch_size=4, num_workers=1)
    writer = featherload.cache.Writer(folder, loader, part_bytes=8000)
    done = 0
    while loader.epoch < 2:
        for batch in loader:
            writer.write(batch, latents=latents(batch.images))
            done += 1
            print("batch", done, flush=True)
            if done == batches:
                sys.stdin.read()
    writer.close()
    print("ended")
"""


def test_killed_at_any_time_it_continues_and_stores_the_same(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": str(here)}
    interrupted = tmp_path / "interrupted"
    # Four batches make a part, and an epoch has ten.
    for batches in (2, 6, 9, 3, 1, 5):
        run = subprocess.Popen(
            [sys.executable, program, folder, interrupted, str(batches)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert run.stdin is not None and run.stdout is not None
        for line in run.stdout:
            if line == f"batch {batches}\n":
                break
        else:
            pytest.fail("it ended before it was killed")
        run.send_signal(signal.SIGKILL)
        run.wait()
        run.stdin.close()
        run.stdout.close()
    assert parts(interrupted)
    # What a kill in the middle of a part leaves.
    (interrupted / ".featherload-00000-abc").write_bytes(b"half a part")
    ended = subprocess.run(
        [sys.executable, program, folder, interrupted, "-1"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.endswith("ended\n")
    # It did not begin anew.
    assert ended.stdout.count("batch") < 14
    assert not (interrupted / ".featherload-00000-abc").exists()
    assert featherload.cache.verify(interrupted).ok
    known = store(
        loader(folder, recipe=RANDOM, batch_size=4, num_workers=1), tmp_path / "whole", epochs=2
    )
    found = featherload.cache.info(interrupted)
    assert found["crops"] == {"0": IMAGES, "1": IMAGES}
    made = loader(folder, columns=["latents"], stored=interrupted, images=False)
    for epoch in range(2):
        same(read(made), known, epoch)


def test_ranks_write_to_one_folder_and_another_number_of_ranks_continues(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    known = store(loader(folder, recipe=RANDOM, batch_size=4), tmp_path / "whole")
    shared = tmp_path / "shared"
    for rank in range(3):
        made = loader(folder, recipe=RANDOM, batch_size=4, rank=rank, world_size=3)
        writer = Writer(shared, made, part_bytes=1)
        for number, batch in enumerate(made):
            if number == 2 + rank % 2:
                break
            writer.write(batch, latents=latents(batch.images))
        # As a kill: what waits is lost.
        writer._lock.close()
        writer.closed = True
    made = loader(folder, recipe=RANDOM, batch_size=5)
    with Writer(shared, made) as writer:
        # All ranks had two batches of four. Rank 1 stored one more, which is not stored again.
        assert made.state_dict()["samples"] == 20
        for batch in made:
            writer.write(batch, latents=latents(batch.images))
    assert featherload.cache.info(shared)["crops"] == {"0": IMAGES}
    same(read(loader(folder, columns=["latents"], stored=shared, images=False)), known)


def test_rows_of_buckets_have_shapes_and_sizes_of_their_own(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    sampler = samplers.Buckets(area=64 * 64, step=16, style="sd-scripts", sides=(32, 128))
    recipe = {
        "featherload": 1,
        "ops": [{"cover_crop": {"size": 64, "place": "random"}}, {"cast": {"dtype": "u8"}}],
    }
    options = {"recipe": recipe, "sampler": sampler, "batch_size": 4, "layout": "nchw"}
    made = loader(folder, **options)
    known = {}
    with Writer(tmp_path, made) as writer:
        for batch in made:
            corner = batch.images[:, :, ::8, ::8].astype(np.float16)
            writer.write(batch, corner=corner)
            for row, at in enumerate(batch.ids.tolist()):
                sizes = batch.original_size[row], batch.crop[row], batch.target_size[row]
                known[at] = (corner[row], *(size.copy() for size in sizes))
    names = ["corner", "original_size", "crop", "target_size"]
    later = loader(folder, **options, columns=names, stored=tmp_path, images=False, seed=9)
    seen = []
    for batch in later:
        with pytest.raises(AttributeError, match="only batches of buckets"):
            _ = batch.crop
        # A batch is of one bucket.
        assert len({row.shape for row in batch["corner"]}) == 1
        for row, at in enumerate(batch.ids.tolist()):
            for name, value in zip(names, known[at], strict=True):
                assert np.array_equal(batch[name][row], value), (name, at)
            seen.append(at)
    assert sorted(seen) == list(range(IMAGES))
    assert len({value[0].shape for value in known.values()}) > 3


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32", "int64", "uint8", "bool"])
def test_types_of_torch_are_kept(folder: Path, loader: Make, tmp_path: Path, kind: str) -> None:
    need("torch")
    import torch

    dtype = getattr(torch, kind)
    made = loader(folder, recipe=RANDOM, batch_size=5, framework="torch")
    known = {}
    with Writer(tmp_path, made) as writer:
        for batch in made:
            values = batch.images[:, 0, :4, :4].to(torch.float32) / 3
            given = values.to(dtype).transpose(1, 2)
            # A batch that was moved, as to a GPU.
            writer.write(batch.to("cpu", copy=True), values=given)
            known |= dict(zip(batch.ids.tolist(), given.clone(), strict=True))
    options = {"columns": ["values"], "stored": tmp_path, "images": False}
    for batch in loader(folder, **options, framework="torch", batch_size=4):
        values = batch["values"]
        assert values.dtype == dtype
        for row, at in enumerate(batch.ids.tolist()):
            assert torch.equal(values[row], known[at])
    assert featherload.cache.info(tmp_path)["columns"] == {"values": kind}


def test_bfloat16_needs_a_framework_that_has_it(
    folder: Path, loader: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("torch")
    import torch

    made = loader(folder, recipe=RANDOM, batch_size=IMAGES, framework="torch")
    with Writer(tmp_path, made) as writer:
        for batch in made:
            writer.write(batch, values=torch.ones(IMAGES, 2, dtype=torch.bfloat16))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(featherload.ConfigError, match="bfloat16, which NumPy lacks"):
        loader(folder, columns=["values"], stored=tmp_path, images=False)


def test_the_library_of_safetensors_reads_a_part(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    need("safetensors")
    from safetensors.numpy import load_file

    known = store(loader(folder, recipe=RANDOM, batch_size=IMAGES, shuffle=False), tmp_path)
    (part,) = parts(tmp_path)
    found = load_file(part)
    assert found["latents"].reshape(-1, 3, 2, 2).shape == (IMAGES, 3, 2, 2)
    for at in range(IMAGES):
        end = found["latents.ends"][at]
        shape = found["latents.shapes"][at]
        values = found["latents"][end - shape.prod() : end].reshape(shape)
        assert np.array_equal(values, known[0, at])
    assert bytes(found["sample.name"]) == b"".join(b"%02d.png" % at for at in range(IMAGES))
    assert found["sample.name.ends"].tolist() == [6 * (at + 1) for at in range(IMAGES)]


def test_an_image_that_is_listed_twice_has_one_row(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    paths = [folder / f"{number % 5:02}.png" for number in range(12)]
    made = loader([str(path) for path in paths], recipe=RANDOM, batch_size=3, shuffle=False)
    stored = 0
    with Writer(tmp_path, made) as writer:
        for batch in made:
            stored += writer.write(batch, number=batch.ids.astype(np.int32))
    assert stored == 5
    options = {"columns": ["number"], "stored": tmp_path, "images": False, "shuffle": False}
    numbers = [batch["number"] for batch in loader([str(path) for path in paths], **options)]
    assert np.concatenate(numbers).tolist() == [number % 5 for number in range(12)]


def test_padding_failed_and_repeated_rows_are_left_out(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    with_broken = tmp_path / "images"
    with_broken.mkdir()
    for number in range(7):
        file = folder / f"{number:02}.png"
        (with_broken / file.name).write_bytes(file.read_bytes()[: None if number != 3 else 40])
    made = loader(
        with_broken, recipe=RANDOM, batch_size=4, pad_last=True, on_error="skip", shuffle=False
    )
    with Writer(tmp_path / "stored", made) as writer:
        stored = [writer.write(batch, number=batch.ids.astype(np.int32)) for batch in made]
    assert stored == [3, 3]
    options = {"columns": ["number"], "stored": tmp_path / "stored", "images": False}
    with pytest.raises(featherload.DatasetError, match=r"1 of 7 samples .* sample 3 \(.*03.png\)"):
        loader(with_broken, **options)
    (with_broken / "03.png").unlink()
    made = loader(with_broken, **options, batch_size=4, pad_last=True, shuffle=False)
    found = [batch["number"].tolist() for batch in made]
    assert found == [[0, 1, 2, 4], [5, 6, 0, 0]]


def test_added_images_are_stored_beside_the_others(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    images = tmp_path / "images"
    images.mkdir()
    for number in (5, 2, 9):
        (images / f"{number:02}.png").write_bytes((folder / f"{number:02}.png").read_bytes())
    stored = []
    for added in (7, 1):
        made = loader(images, recipe=RANDOM, batch_size=2)
        with Writer(tmp_path / "stored", made) as writer:
            stored.append(sum(writer.write(b, score=np.ones(len(b.ids))) for b in made))
        (images / f"{added:02}.png").write_bytes((folder / f"{added:02}.png").read_bytes())
    assert stored == [3, 1]


def test_values_that_cannot_be_stored_are_refused(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    made = loader(folder, recipe=RANDOM, batch_size=5, shuffle=False)
    writer = Writer(tmp_path, made)
    batches = iter(made)
    batch = next(batches)
    good = np.ones((5, 2), np.float32)
    with pytest.raises(featherload.ConfigError, match="another writer of rank 0 is open"):
        Writer(tmp_path, loader(folder, recipe=RANDOM))
    for values, said in [
        ({}, "no values are given"),
        ({"a": good[:4]}, "a has 4 rows, and the batch has 5"),
        ({"a": 3.0}, "give an array with one row a sample"),
        ({"a": np.array(["x"] * 5)}, "values of type 'str"),
        ({"a": good.astype(complex)}, "values of type 'complex"),
        ({"a": [good[0], good[1], good[2], good[3], good]}, "different types or numbers of axes"),
        *(({name: good}, "is one of the format") for name in ("", "x.ends", "sample.key", "__a")),
    ]:
        with pytest.raises(featherload.ConfigError, match=said):
            writer.write(batch, **values)
    with pytest.raises(featherload.DatasetError, match="a of 04.png has infinite values or NaN"):
        writer.write(batch, a=np.where(np.arange(5)[:, None] == 4, np.nan, good.astype(np.float16)))
    assert not writer.has(batch)
    with pytest.raises(featherload.ConfigError, match="'center' is given, and crops are named by"):
        writer.write(batch, a=good, crop_name="center")
    # Nothing was stored, so the type may still be another.
    assert writer.write(batch, a=good) == 5
    other = loader(
        [str(folder / f"{n:02}.png") for n in range(10, 15)], recipe=RANDOM, batch_size=5
    )
    with pytest.raises(featherload.ConfigError, match="is of another data set"):
        writer.write(next(iter(other)), a=good)
    for change in ({"seed": 3}, {"recipe": "eval224"}):
        options = {"recipe": RANDOM, "batch_size": 5, **change}
        with pytest.raises(featherload.ConfigError, match="is of another recipe or seed"):
            writer.write(next(iter(loader(folder, **options))), a=good)
    following = next(batches)
    with pytest.raises(featherload.ConfigError, match="has the columns a, and this batch has b"):
        writer.write(following, b=good)
    with pytest.raises(featherload.ConfigError, match="a has float64 with 1 axes a row"):
        writer.write(following, a=good.astype(np.float64))
    with pytest.raises(featherload.ConfigError, match="is no featherload.Batch"):
        writer.write((1, 2), a=good)  # type: ignore[arg-type]
    writer.close()
    with pytest.raises(featherload.ConfigError, match="the writer is closed"):
        writer.write(following, a=good)
    for change, what in [({"recipe": "eval224"}, "recipe"), ({"seed": 5}, "seed")]:
        options = {"recipe": RANDOM, **change}
        with pytest.raises(featherload.ConfigError, match=f"has values of another {what}"):
            Writer(tmp_path, loader(folder, **options))
    with pytest.raises(featherload.ConfigError, match="an epoch of the loader has begun"):
        Writer(tmp_path, made)
    moved = loader(folder, recipe=RANDOM)
    moved.set_epoch(2)
    with pytest.raises(featherload.ConfigError, match="has a position of its own"):
        Writer(tmp_path, moved)
    for given, said in [
        ({"crops": []}, "has no names"),
        ({"crops": [""]}, "has no names"),
        ({"part_seconds": float("nan")}, "is no time"),
        ({"part_bytes": "much"}, "is not a size"),
        ({"part_bytes": 1.5}, "part_bytes"),
        ({"folder": ""}, "folder is empty"),
    ]:
        with pytest.raises(featherload.ConfigError, match=said):
            Writer(**{"folder": tmp_path, "loader": loader(folder, recipe=RANDOM), **given})
    with pytest.raises(featherload.ConfigError, match="is no featherload.Loader"):
        Writer(tmp_path, [batch])  # type: ignore[arg-type]
    given = loader(folder, recipe=RANDOM, sampler=range(IMAGES))
    with pytest.raises(featherload.ConfigError, match="has a sampler object"):
        Writer(tmp_path, given)


def test_nonfinite_values_are_stored_on_request(folder: Path, loader: Make, tmp_path: Path) -> None:
    made = loader(folder, recipe=RANDOM, batch_size=IMAGES)
    with Writer(tmp_path, made, allow_nonfinite=True) as writer:
        for batch in made:
            writer.write(batch, a=np.full(IMAGES, np.inf, np.float16))
    later = loader(folder, columns=["a"], stored=tmp_path, images=False, batch_size=IMAGES)
    assert np.isinf(next(iter(later))["a"]).all()


def test_a_full_disk_loses_no_row(
    folder: Path, loader: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = loader(folder, recipe=RANDOM, batch_size=5)
    writer = Writer(tmp_path, made)
    full = OSError(28, "No space left on device")
    with monkeypatch.context() as patch:

        def fails(*_: Any) -> None:
            raise full

        patch.setattr(os, "fsync", fails)
        for number, batch in enumerate(made):
            writer.write(batch, latents=latents(batch.images))
            if number == 2:
                with pytest.raises(featherload.PlatformError, match="No space left on device"):
                    writer.flush()
        assert not parts(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [".featherload-rank-00000.lock"]
    writer.close()
    assert featherload.cache.info(tmp_path)["crops"] == {"0": IMAGES}


def test_damage_is_found(folder: Path, loader: Make, tmp_path: Path) -> None:
    store(loader(folder, recipe=RANDOM, batch_size=5), tmp_path, part_bytes=1)
    options = {"columns": ["latents"], "stored": tmp_path, "images": False}
    part = parts(tmp_path)[2]
    whole = part.read_bytes()
    assert featherload.cache.verify(tmp_path).ok
    flipped = bytearray(whole)
    flipped[-1] ^= 1
    part.write_bytes(flipped)
    found = featherload.cache.verify(tmp_path)
    assert not found.ok
    assert [finding["file"] for finding in found["findings"]] == [part.name]
    for content in (b"", whole[:4], whole[:100], whole[:-1], b"\xff" * 100, whole[::-1]):
        part.write_bytes(content)
        assert not featherload.cache.verify(tmp_path).ok
        with pytest.raises(featherload.DatasetError, match="remove this file and store its values"):
            loader(folder, **options)
    start = 8 + int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8:start])
    # Shapes that would take all memory.
    first, end = (start + at for at in header["latents.shapes"]["data_offsets"])
    for number in (1 << 30, -1):
        shapes = number.to_bytes(4, "little", signed=True) * ((end - first) // 4)
        part.write_bytes(whole[:first] + shapes + whole[end:])
        with pytest.raises(featherload.DatasetError, match="has other values than its shapes"):
            loader(folder, **options)
    for tensor in ("latents", "latents.ends", "sample.key", "score.shapes"):
        for change in (
            {"data_offsets": [0, 1 << 60]},
            {"data_offsets": [-8, 0]},
            {"shape": [1]},
            {"shape": [-1, -1]},
            {"dtype": "I8"},
        ):
            text = json.dumps({**header, tensor: {**header[tensor], **change}}).encode()
            part.write_bytes(len(text).to_bytes(8, "little") + text + whole[-2000:])
            with pytest.raises(featherload.DatasetError, match="remove this file"):
                loader(folder, **options)
    for text in (b"[" * 100_000, b'{"a": 1e400}', b"null", b"{}", b'{"__metadata__": 3}'):
        part.write_bytes(len(text).to_bytes(8, "little") + text + whole[-2000:])
        with pytest.raises(featherload.DatasetError, match="remove this file"):
            loader(folder, **options)
        with pytest.raises(featherload.DatasetError, match="remove this file"):
            Writer(tmp_path, loader(folder, recipe=RANDOM, batch_size=5))
    for notes in ({}, {"crop": 3}, {"seed": "x"}, {"recipe": None}, {"featherload": "other"}):
        header["__metadata__"] = {**header["__metadata__"], **notes} if notes else {}
        text = json.dumps(header).encode()
        part.write_bytes(len(text).to_bytes(8, "little") + text + whole[-2000:])
        with pytest.raises(featherload.DatasetError, match="remove this file"):
            loader(folder, **options)
    part.write_bytes(whole)
    made = loader(folder, **options)
    batches = iter(made)
    batch = next(batches)
    # The file is cut off while the run goes on.
    for path in parts(tmp_path):
        os.truncate(path, path.stat().st_size // 4)
    with pytest.raises(featherload.DatasetError, match="ends before its values"):
        _ = batch["latents"]
    for path in parts(tmp_path):
        path.unlink()
    with pytest.raises(featherload.DatasetError, match="cannot be read"):
        _ = batch["latents"]


def test_keywords_that_do_not_fit_are_refused(folder: Path, loader: Make, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for place in (one, two):
        store(loader(folder, recipe=RANDOM, batch_size=20), place)
    refused: list[tuple[type[Exception], dict[str, Any], str]] = [
        (featherload.ConfigError, {"stored": one}, "name some of 'latents', 'score' with columns"),
        (
            featherload.ConfigError,
            {"stored": [one, two], "columns": ["latents"]},
            "column 'latents' is in .*one and in .*two",
        ),
        (featherload.DatasetError, {"stored": folder, "columns": ["a"]}, "has no stored values"),
        (featherload.DatasetError, {"stored": tmp_path / "none"}, "cannot be read"),
        (featherload.ConfigError, {"stored": 3}, "stored 3 is no folder"),
        (featherload.ConfigError, {"stored": ""}, "stored is empty"),
        (featherload.ConfigError, {"images": "no"}, "neither True nor False"),
        (featherload.ConfigError, {"images": False, "masks": "{stem}.png"}, "reads no images"),
        (featherload.ConfigError, {"images": False, "then": abs}, "then is a function on images"),
    ]
    for kind, options, said in refused:
        with pytest.raises(kind, match=said):
            loader(folder, **options)
    other = tmp_path / "other"
    other.mkdir()
    (other / "99.png").write_bytes((folder / "00.png").read_bytes())
    with pytest.raises(featherload.DatasetError, match="1 of 1 samples have no stored values"):
        loader(other, stored=one, columns=["latents"])


@pytest.mark.parametrize("workers", [1, 3])
def test_a_run_without_images_has_the_order_of_one_with_images(
    photos: Path, loader: Make, workers: int
) -> None:
    options: dict[str, Any] = {"recipe": RANDOM, "batch_size": 24, "num_workers": workers}
    whole, without = loader(photos, **options), loader(photos, **options, images=False)
    for _ in range(2):
        for batch, other in zip(whole, without, strict=True):
            assert batch.ids.tolist() == other.ids.tolist()
            assert batch.labels.tolist() == other.labels.tolist()
            assert batch.status == other.status
            assert batch.paths() == other.paths()
            with pytest.raises(AttributeError, match="this batch has no images"):
                _ = other.images
            assert other[0].shape == (len(batch.ids), 0)
    state = without.state_dict()
    assert state["epoch"] == 2
    with pytest.raises(featherload.ConfigError, match="nothing to draw"):
        without.preview()
    # Held batches are copied, as those with images.
    with pytest.warns(RuntimeWarning, match="batches are held"):
        held = [batch.ids.tolist() for batch in [*loader(photos, **options, images=False)]]
    assert len(held) == 11


def test_a_run_without_images_plans_little_memory(photos: Path, loader: Make) -> None:
    options: dict[str, Any] = {"batch_size": 64, "num_workers": 2}
    whole = featherload.plan(photos, **options)["memory"]
    without = featherload.plan(photos, **options, images=False)["memory"]
    assert without["slot_bytes"] == 64 < whole["slot_bytes"]
    assert without["total_bytes"] < whole["total_bytes"]


def test_torch_loader_and_device_moves_keep_stored_values(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    need("torch")
    import torch

    known = store(loader(folder, recipe=RANDOM, batch_size=5), tmp_path)
    made = loader(
        folder, columns=["latents"], stored=tmp_path, images=False, framework="torch", batch_size=4
    )
    for batch in made:
        moved = batch.to("cpu", copy=True)
        values = moved["latents"]
        assert isinstance(values, torch.Tensor)
        for at, row in zip(batch.ids.tolist(), values, strict=True):
            assert np.array_equal(row.numpy(), known[0, at])


def test_keys_of_samples_are_distinct_and_stay(folder: Path, loader: Make, tmp_path: Path) -> None:
    need("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = sorted(folder.glob("*.png"))
    contents = [file.read_bytes() for file in files]
    for place in (tmp_path / "here", tmp_path / "there"):
        (place / "shards").mkdir(parents=True)
        for shard in range(2):
            with tarfile.open(place / f"shards/{shard}.tar", "w") as tar:
                for number, content in enumerate(contents[:5]):
                    # As img2dataset: both shards have members of these names.
                    member = tarfile.TarInfo(f"{number}.png")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
        table = pa.table({"image": contents})
        pq.write_table(table, place / "images.parquet", row_group_size=10)
        with pa.ipc.new_file(place / "images.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=7)
        np.save(place / "images.npy", np.zeros((9, 8, 8, 3), np.uint8))
        rows = "".join(f"{file},{number}\n" for number, file in enumerate(files))
        (place / "images.csv").write_text("path,label\n" + rows)
    sources = ["shards/{0..1}.tar", "images.parquet", "images.arrow", "images.npy"]
    counts = [10, IMAGES, IMAGES, 9]
    for source, count in zip(sources, counts, strict=True):
        first, second = (
            loader(f"{tmp_path}/{place}/{source}", recipe="eval224")._stream.sample_keys(False)
            for place in ("here", "there")
        )
        assert first == second, source
        assert len({first[16 * n : 16 * n + 16] for n in range(count)}) == count, source
    table = loader(tmp_path / "here/images.csv", allow_outside=True, recipe="eval224")
    paths = loader([str(file) for file in files], recipe="eval224")
    of_bytes = loader(contents, recipe="eval224")
    for made in (table, paths, of_bytes, loader(folder, recipe="eval224")):
        keys = made._stream.sample_keys(made._lists_samples())
        assert len({keys[16 * n : 16 * n + 16] for n in range(IMAGES)}) == IMAGES
    # A list in Python has whole paths: names do not follow from its other paths.
    one = loader([str(files[3])], recipe="eval224")._stream.sample_keys(True)
    assert one == paths._stream.sample_keys(True)[16 * 3 : 16 * 4]
    # Samples in memory are found by their bytes, wherever they are in the list.
    turned = loader(contents[::-1], recipe="eval224")._stream.sample_keys(True)
    assert turned[:16] == of_bytes._stream.sample_keys(True)[-16:]


def test_parts_that_were_removed_are_stored_again(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    known = store(loader(folder, recipe=RANDOM, batch_size=5), tmp_path, part_bytes=1)
    parts(tmp_path)[2].unlink()
    with pytest.raises(featherload.DatasetError, match="5 of 37 samples have no stored values"):
        loader(folder, columns=["latents"], stored=tmp_path, images=False)
    made = loader(folder, recipe=RANDOM, batch_size=5)
    with Writer(tmp_path, made) as writer:
        stored = 0
        for batch in made:
            values = latents(batch.images)
            stored += writer.write(batch, latents=values, score=values.mean(axis=(1, 2, 3)))
    assert stored == 5
    same(read(loader(folder, columns=["latents"], stored=tmp_path, images=False)), known)
    # All is stored: the loader begins at the last batch, and no other crop begins.
    made = loader(folder, recipe=RANDOM, batch_size=5)
    with Writer(tmp_path, made) as writer:
        left = [writer.has(batch) for batch in made]
    assert left == [True]


def test_threads_share_a_writer(folder: Path, loader: Make, tmp_path: Path) -> None:
    made = loader(folder, recipe=RANDOM, batch_size=3, depth=20)
    batches = [*made]
    made = loader(folder, recipe=RANDOM, batch_size=3, depth=20)
    with Writer(tmp_path, made, part_bytes=1) as writer:
        values = {batch.number: latents(batch.images) for batch in batches}

        def run(first: int) -> None:
            for batch in batches[first::4]:
                writer.write(batch, latents=values[batch.number])

        threads = [threading.Thread(target=run, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert featherload.cache.info(tmp_path)["crops"] == {"0": IMAGES}


def test_values_of_another_file_of_the_same_name_are_refused(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    store(loader(folder, recipe=RANDOM, batch_size=20), tmp_path / "stored")
    other = tmp_path / "other"
    other.mkdir()
    for number in range(IMAGES):
        # Of other lengths, but for image 0.
        content = (folder / f"{number:02}.png").read_bytes()
        (other / f"{number:02}.png").write_bytes(content + b"x" * (number > 0))
    made = loader(
        other, columns=["latents"], stored=tmp_path / "stored", images=False, shuffle=False
    )
    batch = next(iter(made))
    with pytest.raises(
        featherload.DatasetError, match="it has changed, or the data set is another"
    ):
        _ = batch["latents"]


def test_a_list_with_further_images_keeps_its_values(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    some = [str(folder / f"{number:02}.png") for number in range(9)]
    store(loader(some, recipe=RANDOM, batch_size=4), tmp_path / "stored")
    elsewhere = tmp_path / "other.png"
    elsewhere.write_bytes((folder / "20.png").read_bytes())
    made = loader([str(elsewhere), *some[::-1]], recipe=RANDOM, batch_size=4)
    with Writer(tmp_path / "stored", made) as writer:
        stored = 0
        for batch in made:
            values = latents(batch.images)
            stored += writer.write(batch, latents=values, score=values.mean(axis=(1, 2, 3)))
    assert stored == 1


def test_images_of_other_crops_are_worth_a_warning(
    folder: Path, loader: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store(loader(folder, recipe=RANDOM, batch_size=20), tmp_path)
    options: dict[str, Any] = {"columns": ["latents"], "stored": tmp_path}
    loader(folder, recipe=RANDOM, **options)
    loader(folder, recipe=RANDOM, images=False, seed=4, **options)
    assert "other crops" not in caplog.text
    loader(folder, recipe=RANDOM, seed=4, **options)
    assert "may belong to other crops than the images of this loader" in caplog.text


def test_a_writer_that_is_dropped_tells_its_rows(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    made = loader(folder, recipe=RANDOM, batch_size=20)
    writer = Writer(tmp_path, made)
    batch = next(iter(made))
    writer.write(batch, latents=latents(batch.images))
    with pytest.warns(ResourceWarning, match="was dropped with 20 rows that are not on the disk"):
        del writer
    # Its lock is free.
    Writer(tmp_path, loader(folder, recipe=RANDOM)).close()


def test_named_batches_without_images_have_no_entry_for_them(
    folder: Path, loader: Make, tmp_path: Path
) -> None:
    need("torch")
    from featherload._named_batches import NamedBatches

    known = store(loader(folder, recipe=RANDOM, batch_size=20), tmp_path)
    made = loader(
        folder, columns=["latents"], stored=tmp_path, images=False, framework="torch", batch_size=8
    )
    for named in NamedBatches(iter(made), ("pixel_values", "labels")):
        assert [*named] == ["labels", "latents"]
        assert named["latents"].shape[1:] == known[0, 0].shape


def test_the_error_of_a_with_block_comes_through_a_full_disk(
    folder: Path, loader: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = loader(folder, recipe=RANDOM, batch_size=5)

    def fails(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with (
        pytest.raises(ValueError, match="the trainer's own") as raised,
        monkeypatch.context() as patch,
        Writer(tmp_path, made) as writer,
    ):
        batch = next(iter(made))
        writer.write(batch, latents=latents(batch.images))
        patch.setattr(os, "fsync", fails)
        raise ValueError("the trainer's own")
    assert "rows that waited were lost" in raised.value.__notes__[0]
    # Its lock is free.
    Writer(tmp_path, loader(folder, recipe=RANDOM)).close()
    # Without a full disk the rows are stored.
    made = loader(folder, recipe=RANDOM, batch_size=5)
    with pytest.raises(ValueError, match="another"), Writer(tmp_path, made) as writer:
        batch = next(iter(made))
        writer.write(batch, latents=latents(batch.images))
        raise ValueError("another")
    assert featherload.cache.info(tmp_path)["crops"] == {"0": 5}


def test_orders_that_leave_samples_out_are_worth_a_warning(
    folder: Path, loader: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for options in ({"drop_last": True}, {"sampler": samplers.RepeatedAugmentation()}):
        Writer(tmp_path, loader(folder, recipe=RANDOM, **options)).close()
        assert "leaves samples out" in caplog.text
        caplog.clear()
    for options in ({"shuffle": False}, {"sampler": samplers.ShardShuffle()}):
        Writer(tmp_path, loader(folder, recipe=RANDOM, **options)).close()
        assert "leaves samples out" not in caplog.text

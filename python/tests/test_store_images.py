"""Single images in an object store: caches and batches are those of a folder of the same files."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import SMALL, digest
from object_store import SECRET, Store
from test_from_store import files, of
from test_sent import objects
from test_stores import fetch, until

import featherload
from featherload import cache
from featherload._helper import helper

OPTIONS: dict[str, Any] = {
    "shard_samples": 20,
    "encode": "jpeg:80",
    "resize": "shorter:64",
    "progress": False,
    "num_workers": 2,
}


@pytest.fixture
def folder(photos: Path, tmp_path: Path) -> Path:
    """The pictures, and a text beside them."""
    folder = tmp_path / "photos"
    shutil.copytree(photos, folder)
    first = sorted(path for path in folder.iterdir() if path.is_dir())[0]
    (first / "notes.txt").write_text("none")
    return folder


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The folder of fetched shards."""
    return tmp_path / "fetched"


@pytest.fixture
def url(store: Store, folder: Path) -> str:
    return store.upload(folder, "sets/photos")


@pytest.fixture
def want(folder: Path, tmp_path: Path) -> dict[str, Any]:
    """Made of the folder."""
    cache.build(folder, tmp_path / "want", **OPTIONS)
    return shards(files(tmp_path / "want"))


def shards(contents: dict[str, Any]) -> dict[str, bytes]:
    """Tars, their indexes and their manifests."""
    return {name: data for name, data in contents.items() if name.startswith("shard-")}


def test_batches_are_those_of_the_folder(
    url: str, store: Store, folder: Path, here: Path, loader: Any
) -> None:
    one, other = loader(url, recipe=SMALL, fetch_dir=here), loader(folder, recipe=SMALL)
    for _ in range(2):
        assert digest(one) == digest(other)
    assert one.dataset.classes == other.dataset.classes
    # Each object is requested once.
    times = store.proxy.times_fetched("*.jpg") | store.proxy.times_fetched("*.png")
    assert set(times.values()) == {1}


def test_a_bad_network_changes_no_byte(
    url: str, store: Store, want: dict[str, bytes], tmp_path: Path
) -> None:
    store.proxy.refuse("*.jpg", times=200)
    store.proxy.cut("*.jpg", after=10_000, times=20)
    there = store.url("sets/cache")
    report = cache.build(
        url, there, fetch_dir=tmp_path / "fetched", stage_dir=tmp_path / "stage", **OPTIONS
    )
    assert report["complete"] and report["samples"] == 256
    assert report["fetched"]["retries"] > 0
    assert shards(of(objects(store, "sets/cache/"))) == want


def test_a_killed_build_goes_on(
    url: str, store: Store, want: dict[str, bytes], tmp_path: Path
) -> None:
    store.proxy.delay(0.005)
    dst = tmp_path / "cache"
    words = ["--encode", "jpeg:80", "--resize", "shorter:64", "--shard-samples", "20"]
    words += ["--num-workers", "1", *fetch(tmp_path / "fetched", "200M")]
    for shard in (1, 4, None):
        run = subprocess.Popen(
            [helper(), "cache", "build", url, str(dst), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if shard is not None:
            until(lambda shard=shard: (dst / f"shard-{shard:06}.json").exists())  # type: ignore[misc]
            run.send_signal(signal.SIGKILL)
        out, error = run.communicate(timeout=60)
        assert SECRET not in out + error
        if shard is None:
            assert run.returncode == 0, error
    assert shards(files(dst)) == want
    # The objects of the pack came once, although two builds were killed.
    assert set(store.proxy.times_fetched("*.jpg").values()) <= {1, 2}


def test_pages_of_a_listing_and_options_of_a_folder(
    store: Store, folder: Path, here: Path, loader: Any
) -> None:
    """More objects than a page has, in one class; and a class list."""
    image = next(path for path in folder.rglob("*.jpg")).read_bytes()
    for number in range(1_050):
        store.put(f"many/{'ab'[number % 2]}/{number:05}.jpg", image)
    url = store.url("many")
    one = loader(url, recipe=SMALL, fetch_dir=here)
    assert len(one.dataset) == 1_050 and one.dataset.classes == ["a", "b"]
    assert [one.dataset[number][1] for number in (0, 524, 525)] == [0, 0, 1]
    names = folder.parent / "names.txt"
    names.write_text("b\na\n")
    two = loader(url, recipe=SMALL, fetch_dir=here, classes=names)
    assert [two.dataset[number][1] for number in (0, 1_049)] == [1, 0]
    with pytest.raises(featherload.DatasetError, match="remove the options that name fields"):
        loader(url, recipe=SMALL, fetch_dir=here, label_field="cls")


@pytest.mark.parametrize(
    ("change", "why", "left"),
    [
        ("longer", "was overwritten since it was listed: start the run again", 256),
        ("shorter", "was overwritten since it was listed: start the run again", 256),
        ("gone", "was listed, and does not exist any more: start the run again", 255),
    ],
)
def test_an_object_that_changed_since_it_was_listed_is_named(
    url: str,
    store: Store,
    folder: Path,
    here: Path,
    loader: Any,
    change: str,
    why: str,
    left: int,
) -> None:
    some = sorted(folder.rglob("*.jpg"))[5].relative_to(folder)
    data = (folder / some).read_bytes()
    # Between the listing and the download.
    store.proxy.delay(2.0, f"*/{some}", times=1)
    one = loader(url, recipe=SMALL, fetch_dir=here, shuffle=False)
    if change == "gone":
        store.delete(f"sets/photos/{some}")
    else:
        store.put(f"sets/photos/{some}", data + b"more" if change == "longer" else data[:-2])
    with pytest.raises(featherload.Error, match=why) as caught:
        next(iter(one))
    assert str(some) in str(caught.value)
    # The next run lists again, and reads what is there now.
    two = loader(url, recipe=SMALL, fetch_dir=here, shuffle=False, on_error="skip")
    assert sum(len(batch.ids) for batch in two) == left

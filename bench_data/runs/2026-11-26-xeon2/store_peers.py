"""LitData and MosaicML Streaming beside featherload: the same JPEGs in one S3 store.

    python store_peers.py make PLACE --photos ../shared/data/photos
    python store_peers.py run PLACE

`make` writes PLACE/sets/{featherload,litdata,mds} from one list of JPEGs. `run` puts them into
moto's S3 server behind the tests' proxy. Each measurement is a fresh process with an empty folder.
The loaders take turns. Results go to `store_peers.json` beside this file, after each measurement.

All loaders: 1 rank, 2 workers, batch 64, shuffled through shards, the pixels of `eval224` as f32.

Streaming keeps state in /dev/shm and in the folder for temporary files. Run this where no other
Streaming job runs: `clean_stale_shared_memory` removes the state of such a job.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "python" / "tests"))

LOADERS = ("featherload", "litdata", "mds")
PACKAGES = ("featherload", "litdata", "obstore", "mosaicml-streaming")
PACKAGES += ("torch", "torchvision", "moto", "boto3")
BUCKET = "bench"
SHARD_BYTES = 4 << 20
SHORTER = 256
WORKERS = 2
BATCH = 64
EPOCHS = 2
MORE = ("litdata_pre_download", "allow_http", "mds_new_client")
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def small_jpegs(photos: Path, place: Path) -> list[Path]:
    """Each photo once: shorter side 256, quality 90."""
    from PIL import Image

    place.mkdir(parents=True, exist_ok=True)
    made = []
    for at, path in enumerate(sorted(p for p in photos.rglob("*") if p.suffix.lower() == ".jpeg")):
        to = place / f"{at:04}.jpeg"
        with Image.open(path) as image:
            scale = SHORTER / min(image.size)
            size = (round(image.width * scale), round(image.height * scale))
            image.convert("RGB").resize(size, Image.Resampling.LANCZOS).save(to, quality=90)
        made.append(to)
    return made


class Sample:
    """The sample of a number. LitData pickles it."""

    def __init__(self, paths: list[Path]) -> None:
        self.jpegs = [path.read_bytes() for path in paths]

    def __call__(self, at: int) -> dict[str, Any]:
        of = at % len(self.jpegs)
        return {"id": at, "jpeg": self.jpegs[of], "label": of}


def make(place: Path, photos: Path, total: int) -> None:
    import featherload
    import litdata
    import streaming

    paths = small_jpegs(photos, place / "small")
    once = sum(path.stat().st_size for path in paths)
    count = round(total / once) * len(paths)
    per_shard = SHARD_BYTES * len(paths) // once
    sample = Sample(paths)
    sets = place / "sets"
    shutil.rmtree(sets, ignore_errors=True)
    sets.mkdir(parents=True)

    listed = place / "list.txt"
    names = (paths[at % len(paths)].name for at in range(count))
    listed.write_text("".join(f"{n} {at % len(paths)}\n" for at, n in enumerate(names)))
    binary = Path(featherload.__file__).parent / "_bin" / "featherload"
    options = ["--root", str(place / "small"), "--shard-samples", str(per_shard)]
    command = [str(binary), "cache", "build", str(listed), str(sets / "featherload"), *options]
    subprocess.run(command, check=True)

    columns = {"id": "int", "jpeg": "bytes", "label": "int"}
    with streaming.MDSWriter(
        out=str(sets / "mds"), columns=columns, size_limit=SHARD_BYTES
    ) as writer:
        for at in range(count):
            writer.write(sample(at))

    litdata.optimize(
        fn=sample,
        inputs=list(range(count)),
        output_dir=str(sets / "litdata"),
        chunk_bytes=SHARD_BYTES,
        num_workers=1,
        keep_data_ordered=True,
    )
    about: dict[str, Any] = {
        "samples": count,
        "photos": len(paths),
        "jpeg_bytes": once * (count // len(paths)),
        "shard_bytes": SHARD_BYTES,
        "featherload_samples_per_shard": per_shard,
    }
    for name in LOADERS:
        files = [one for one in (sets / name).rglob("*") if one.is_file()]
        shards = [one for one in files if one.suffix in (".tar", ".bin", ".mds")]
        about[name] = {"bytes": sum(one.stat().st_size for one in files), "shards": len(shards)}
    (place / "about.json").write_text(json.dumps(about, indent=1) + "\n")
    print(json.dumps(about, indent=1))


class Eval224:
    """The pixels of the recipe eval224, by torchvision: libjpeg-turbo, then tensors."""

    def __init__(self) -> None:
        import torch
        from torchvision.transforms import v2

        self.ops = v2.Compose(
            [
                v2.Resize(SHORTER, antialias=True),
                v2.CenterCrop(224),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize(MEAN, STD),
            ]
        )

    def __call__(self, sample: dict[str, Any]) -> tuple[Any, int, int]:
        import torch
        from torchvision.io import ImageReadMode, decode_jpeg

        data = torch.frombuffer(bytearray(sample["jpeg"]), dtype=torch.uint8)
        pixels = self.ops(decode_jpeg(data, mode=ImageReadMode.RGB))
        return pixels, int(sample["label"]), int(sample["id"])


def featherload_epochs(given: argparse.Namespace) -> Iterator[Iterator[tuple[Any, Any]]]:
    import featherload

    loader = featherload.Loader(
        f"s3://{BUCKET}/featherload",
        recipe="eval224",
        batch_size=BATCH,
        num_workers=WORKERS,
        dtype="float32",
        framework="torch",
        epochs=EPOCHS,
        fetch_dir=given.folder,
        fetch_limit=given.limit,
        sampler=featherload.samplers.ShardShuffle(window=given.window),
    )
    for _ in range(EPOCHS):
        yield ((batch.images, batch.ids) for batch in loader)
    loader.close()


def litdata_epochs(given: argparse.Namespace) -> Iterator[Iterator[tuple[Any, Any]]]:
    import litdata

    if given.allow_http:
        # obstore refuses addresses without TLS. litdata has no option for that.
        from litdata.streaming import downloader

        downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True
    dataset = litdata.StreamingDataset(
        f"s3://{BUCKET}/litdata",
        cache_dir=str(given.folder),
        shuffle=True,
        max_cache_size=given.limit,
        max_pre_download=given.litdata_pre_download,
        transform=Eval224(),
        storage_options={"endpoint_url": os.environ["AWS_ENDPOINT_URL"]},
    )
    loader = litdata.StreamingDataLoader(
        dataset, batch_size=BATCH, num_workers=WORKERS, persistent_workers=True
    )
    for _ in range(EPOCHS):
        yield ((images, ids) for images, _, ids in loader)


def mds_epochs(given: argparse.Namespace) -> Iterator[Iterator[tuple[Any, Any]]]:
    import streaming
    from streaming.base.util import clean_stale_shared_memory

    pixels = Eval224()

    class Decoded(streaming.StreamingDataset):  # type: ignore[misc]
        def __getitem__(self, at: Any) -> Any:
            return pixels(super().__getitem__(at))

    clean_stale_shared_memory()
    dataset = Decoded(
        remote=f"s3://{BUCKET}/mds",
        local=str(given.folder),
        shuffle=True,
        shuffle_algo="py1e",
        shuffle_block_size=given.window,
        num_canonical_nodes=1,
        predownload=given.predownload,
        cache_limit=given.limit,
        batch_size=BATCH,
    )
    if given.mds_new_client:
        # The client that fetched the index has an open connection. Forked workers inherit it.
        for stream in dataset.streams:
            stream._downloader.clean_up()
    loader = streaming.StreamingDataLoader(
        dataset, batch_size=BATCH, num_workers=WORKERS, persistent_workers=True
    )
    for _ in range(EPOCHS):
        yield ((images, ids) for images, _, ids in loader)


def one(given: argparse.Namespace) -> None:
    """A loader in this process. The last line of output is JSON."""
    epochs = {
        "featherload": featherload_epochs,
        "litdata": litdata_epochs,
        "mds": mds_epochs,
    }[given.loader]
    found: dict[str, Any] = {"epochs": []}
    for batches in epochs(given):
        began = time.monotonic()
        seen: set[int] = set()
        count = 0
        for images, ids in batches:
            assert tuple(images.shape[1:]) == (3, 224, 224), images.shape
            assert str(images.dtype) == "torch.float32", images.dtype
            found.setdefault("first_batch_s", time.monotonic() - given.began)
            seen.update(ids.tolist())
            count += len(ids)
        seconds = time.monotonic() - began
        of_epoch = {"images_per_s": count / seconds, "seconds": seconds}
        of_epoch |= {"samples": count, "distinct": len(seen)}
        found["epochs"].append(of_epoch)
        print(json.dumps(of_epoch), file=sys.stderr, flush=True)
    print(json.dumps(found), flush=True)


def tree(pid: int) -> list[int]:
    found = [pid]
    for at in found:
        try:
            for task in os.listdir(f"/proc/{at}/task"):
                children = Path(f"/proc/{at}/task/{task}/children").read_text()
                found += [int(child) for child in children.split()]
        except OSError:
            continue
    return found


class Watch:
    """Peaks: blocks of the files in a folder, each 50 ms; summed PSS of a tree, each 500 ms."""

    def __init__(self, folder: Path, pid: int) -> None:
        self.folder, self.pid = folder, pid
        self.disk = self.pss = 0
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._each, args=each, daemon=True)
            for each in ((self._look, 0.05), (self._weigh, 0.5))
        ]
        for thread in self._threads:
            thread.start()

    def _each(self, what: Any, seconds: float) -> None:
        while not self._over.wait(seconds):
            what()

    def _look(self) -> None:
        disk = 0
        for at, _, names in os.walk(self.folder):
            for name in names:
                try:
                    disk += os.stat(os.path.join(at, name)).st_blocks * 512
                except OSError:
                    continue
        self.disk = max(self.disk, disk)

    def _weigh(self) -> None:
        kib = 0
        for pid in tree(self.pid):
            try:
                text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            except OSError:
                continue
            kib += sum(int(row.split()[1]) for row in text.splitlines() if row.startswith("Pss:"))
        self.pss = max(self.pss, kib * 1024)

    def end(self) -> dict[str, int]:
        self._over.set()
        for thread in self._threads:
            thread.join()
        return {"disk_peak_bytes": self.disk, "pss_peak_bytes": self.pss}


def measure(given: argparse.Namespace, loader: str, rate: float, store: Any) -> dict[str, Any]:
    from store_proxy import StoreProxy

    folder = given.place / "here"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    log = given.place / f"{loader}.log"
    with StoreProxy(("127.0.0.1", store.port)) as proxy, log.open("w") as errors:
        proxy.limit_rate(rate * 1e6 or None)
        env = {**os.environ, **store.env, "AWS_ENDPOINT_URL": proxy.url}
        env |= {"S3_ENDPOINT_URL": proxy.url, "AWS_EC2_METADATA_DISABLED": "true"}
        load = os.getloadavg()[0]
        began = time.monotonic()
        command = [sys.executable, str(Path(__file__).resolve()), "one", loader]
        command += ["--began", repr(began), "--folder", str(folder)]
        for option in ("limit", "window", "predownload", *MORE):
            command += ["--" + option.replace("_", "-"), str(getattr(given, option))]
        process = subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        watch = Watch(folder, process.pid)
        try:
            said = process.communicate(timeout=given.patience)[0]
            timed_out = False
        except subprocess.TimeoutExpired:
            if given.stacks:
                for pid in tree(process.pid):
                    subprocess.run(["py-spy", "dump", "--pid", str(pid)], stdout=errors)
            for pid in reversed(tree(process.pid)):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            said, timed_out = process.communicate()[0], True
        seconds = time.monotonic() - began
        statuses: dict[str, int] = {}
        for request in proxy.requests:
            statuses[str(request.status)] = statuses.get(str(request.status), 0) + 1
        found: dict[str, Any] = {
            "loader": loader,
            "rate_mb_s": rate or None,
            "load_before": load,
            "seconds": seconds,
            "exit": process.returncode,
            "timed_out": timed_out,
            "bytes_sent": proxy.bytes_sent(),
            "gets": len(proxy.gets()),
            "statuses": statuses,
            **watch.end(),
        }
    lines = said.strip().splitlines()
    if process.returncode == 0 and lines:
        found |= json.loads(lines[-1])
    else:
        found["log"] = log.read_text()[-3000:]
    shutil.rmtree(folder, ignore_errors=True)
    return found


def shown(found: dict[str, Any]) -> str:
    head = f"{found['loader']:12} {found['rate_mb_s']} MB/s load {found['load_before']:.1f}"
    tail = f"sent {found['bytes_sent'] / 1e6:.0f} MB, disk {found['disk_peak_bytes'] / 1e6:.0f} MB"
    tail += f", PSS {found['pss_peak_bytes'] / 1e6:.0f} MB, {found['statuses']}"
    if "epochs" not in found:
        return f"{head}: exit {found['exit']}, {tail}\n{found['log']}"
    rates = ", ".join(f"{one['images_per_s']:.0f}" for one in found["epochs"])
    seen = ", ".join(f"{one['distinct']}/{one['samples']}" for one in found["epochs"])
    return f"{head}: first {found['first_batch_s']:.2f} s, {rates} images/s, {seen}, {tail}"


class Store:
    """A bucket of moto's, with the sets that are measured."""

    def __init__(self, port: int, sets: Path, names: list[str]) -> None:
        from object_store import Store as Bucket

        self.port = port
        bucket = Bucket(port, BUCKET)
        self.env = bucket.env
        for name in names:
            bucket.upload(sets / name, name)
        bucket.close()


def run(given: argparse.Namespace) -> None:
    from object_store import served

    names = given.only.split(",")
    results: dict[str, Any] = {
        "versions": {name: version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "set": json.loads((given.place / "about.json").read_text()),
        "limit": given.limit,
        "window": given.window,
        "predownload": given.predownload,
        **{name: getattr(given, name) for name in MORE},
        "runs": [],
    }
    with served() as port:
        store = Store(port, given.place / "sets", names)
        for turn in range(given.turns):
            for rate in [float(one) for one in given.rates.split(",")]:
                for loader in names[turn % len(names) :] + names[: turn % len(names)]:
                    found = measure(given, loader, rate, store)
                    results["runs"].append({"turn": turn, **found})
                    given.out.write_text(json.dumps(results, indent=1) + "\n")
                    print(shown(found), flush=True)


def main() -> None:
    said = argparse.ArgumentParser(description=__doc__)
    steps = said.add_subparsers(required=True)
    making = steps.add_parser("make")
    making.add_argument("place", type=Path)
    making.add_argument("--photos", type=Path, required=True)
    making.add_argument("--gb", type=float, default=0.3)
    making.set_defaults(step=lambda at: make(at.place, at.photos, int(at.gb * 1e9)))
    running = steps.add_parser("run")
    running.add_argument("place", type=Path)
    running.add_argument("--rates", default="0,40", help="MB/s, 0: unlimited")
    running.add_argument("--turns", type=int, default=2)
    running.add_argument("--only", default=",".join(LOADERS))
    running.add_argument("--patience", type=float, default=300.0, help="seconds for one run")
    running.add_argument("--stacks", action="store_true", help="py-spy of a run that hangs")
    running.add_argument("--out", type=Path, default=HERE / "store_peers.json")
    running.set_defaults(step=run)
    alone = steps.add_parser("one")
    alone.add_argument("loader", choices=LOADERS)
    alone.add_argument("--began", type=float, required=True)
    alone.add_argument("--folder", type=Path, required=True)
    alone.set_defaults(step=one)
    for parser in (running, alone):
        parser.add_argument("--limit", type=int, default=75_000_000)
        parser.add_argument("--window", type=int, default=1024)
        parser.add_argument("--predownload", type=int, default=512, help="Streaming: samples")
        parser.add_argument("--litdata-pre-download", type=int, default=2, help="LitData: chunks")
        parser.add_argument("--mds-new-client", type=int, default=0, help="Streaming: 1 after fork")
        parser.add_argument("--allow-http", type=int, default=1, help="LitData: 0 as it comes")
    given = said.parse_args()
    given.step(given)


if __name__ == "__main__":
    main()

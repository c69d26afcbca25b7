"""The folder in which all cases run, and the files that it holds before the first case.

The commands that make images with `featherload demo` are cases, so that the table has the hashes
of their files. This module makes the rest: images of odd sizes, lists, recipes and tar shards. It
copies the shared photos and PaddleClas configs, if they are present.
"""

import fcntl
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import recipes

# The same path in all runs, since kept indexes hold the absolute path of their data.
FOLDER = Path(tempfile.gettempdir()) / "featherload-digests"
# The time of all files, since caches hold the times of their source files.
TIME = 1_700_000_000
# Heights and widths that test the edge cases of resizes, crops and fast paths.
ODD_SIZES = [
    (1, 1),
    (1, 40),
    (40, 1),
    (2, 3),
    (7, 500),
    (500, 7),
    (21, 21),
    (31, 44),
    (33, 64),
    (57, 40),
    (63, 65),
    (64, 64),
    (99, 101),
    (128, 96),
    (255, 257),
    (300, 17),
]


class Data:
    """The folder, locked against other runs. It is removed at the end, unless it is kept."""

    def __init__(self, shared, keep):
        self.shared, self.keep = shared, keep

    def __enter__(self):
        self.lock = open(f"{FOLDER}.lock", "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"digests: another run works in {FOLDER}: wait until it has ended")
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir()
        recipes.write(FOLDER / "recipes")
        _odd_pictures(FOLDER / "odd")
        self.photos = self._copied("photos")
        self.fox = self._copied("fox/images", most=12)
        self.configs = self._copied("paddleclas")
        return self

    def __exit__(self, *_):
        if not self.keep:
            shutil.rmtree(FOLDER, ignore_errors=True)
        self.lock.close()

    @property
    def scenes(self):
        """The names of the demo's scenes, from its manifest. Empty before the demo has run."""
        manifest = FOLDER / "scenes/.featherload-demo.json"
        if not manifest.is_file():
            return []
        return [scene["path"] for scene in json.loads(manifest.read_text())["scenes"]]

    def present(self):
        """The names of the shared data that are present."""
        shared = {"photos": self.photos, "fox": self.fox, "paddleclas": self.configs}
        return [name for name, files in shared.items() if files]

    def _copied(self, name, most=None):
        """Copies a shared folder, and returns the relative paths of its files. Empty if absent."""
        source = self.shared / name
        if not source.is_dir():
            absent = f"no folder {source}, so its cases are left out: set FEATHERLOAD_DATA"
            print(f"digests: {absent}", file=sys.stderr)
            return []
        files = sorted(path for path in source.rglob("*") if path.is_file())[:most]
        target = FOLDER / Path(name).parts[0]
        for file in files:
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        stamp(target)
        return [str(file.relative_to(source)) for file in files]


def stamp(folder):
    """Gives every file in the folder the same time."""
    for path in Path(folder).rglob("*"):
        os.utime(path, (TIME, TIME), follow_symlinks=False)


def behind_demo(data):
    """Makes the files that need the demo sets. It runs after the inputs."""
    # Root can read a file without permissions, and other users cannot: make it readable.
    for path in FOLDER.glob("broken/*/*no_permission*"):
        path.chmod(0o644)
    for name in ("default", "mixed", "large", "broken"):
        if (FOLDER / name).is_dir():
            stamp(FOLDER / name)
    _lists(FOLDER / "lists", sorted(FOLDER.glob("default/*/*.jpg")))
    _tars(FOLDER / "tars", sorted(FOLDER.glob("default/*/*.jpg")))
    if data.configs:
        _paddle_lists(FOLDER / "lists", data.photos)


def _odd_pictures(folder):
    """Writes slopes with noise as PPM files, so that neighbouring pixels differ."""
    folder.mkdir()
    for number, (height, width) in enumerate(ODD_SIZES):
        state = 12_345 + number
        pixels = bytearray()
        for y in range(height):
            for x in range(width):
                for channel in range(3):
                    state = (state * 1_103_515_245 + 12_345) & 0x7FFFFFFF
                    slope = 150 * x // width + 60 * y // height + 20 * channel
                    pixels.append((slope + (state >> 16) % 40) % 256)
        head = f"P6\n{width} {height}\n255\n".encode()
        (folder / f"{height}x{width}.ppm").write_bytes(head + pixels)
    stamp(folder)


def _lists(folder, pictures):
    folder.mkdir(exist_ok=True)
    names = [path.relative_to(FOLDER / "default") for path in pictures]

    def write(file, line):
        lines = [line(number, name) for number, name in enumerate(names)]
        (folder / file).write_text("\n".join(lines) + "\n")

    write("classes.txt", lambda i, name: f"{name} {i * 7 % 5}")
    write("tabs.txt", lambda i, name: f"{name}\t{i % 3}")
    write("paths.txt", lambda _, name: str(name))
    write("vectors.txt", lambda i, name: f"{name}\t{i % 2},{i * 0.125},-1.5,0,{1 + i % 3}")
    write("quoted.txt", lambda i, name: f'"{name}" {-i}')
    write("unlike.txt", lambda i, name: f"{name} {i}" if i < 9 else f"{name} word")
    # Lists that contain broken files, with two kinds of labels.
    broken = sorted(FOLDER.glob("broken/*/*"))
    for file, label in (("broken.txt", "{0}"), ("broken-vectors.txt", "{0},0.5,{1}")):
        lines = [
            f"{path.relative_to(FOLDER / 'broken')}\t{label.format(i % 4, i % 3)}"
            for i, path in enumerate(broken)
        ]
        (folder / file).write_text("\n".join(lines) + "\n")
    (folder / "class-names.txt").write_text("class_04\nclass_02\nclass_00\nclass_01\nclass_03\n")


def _tars(folder, pictures):
    """Writes shards as WebDataset does: images with several kinds of labels."""
    folder.mkdir()
    per_shard = 8
    for first in range(0, len(pictures), per_shard):
        with tarfile.open(
            folder / f"set-{first // per_shard:03}.tar", "w", format=tarfile.GNU_FORMAT
        ) as tar:
            for number, path in enumerate(pictures[first : first + per_shard], first):
                label = {"objects": [{"label": number % 3}], "vector": [number, 0.5, -1]}
                # One key is longer than the name field of a tar header.
                key = f"{path.parent.name}/{number:05}" + "-long" * (30 * (number == 3))
                _add(tar, f"{key}.jpg", path.read_bytes())
                _add(tar, f"{key}.cls", str(number % 5).encode())
                _add(tar, f"{key}.txt", b"name %d" % (number % 4))
                _add(tar, f"{key}.json", json.dumps(label).encode())
    stamp(folder)


def _add(tar, name, content):
    member = tarfile.TarInfo(name)
    member.size, member.mtime = len(content), TIME
    tar.addfile(member, io.BytesIO(content))


def _paddle_lists(folder, photos):
    """Writes a list in each form that the configs use, longer than a batch of the configs."""
    forms = {
        "blank": lambda name, i, classes: f"{name} {i % classes}",
        "tab": lambda name, i, classes: f"{name}\t{i % classes}",
        "second": lambda name, i, classes: f"{name} {i % classes} 7",
        "vector": lambda name, i, classes: f"{name}\t{i % 2},1,0",
        "paths": lambda name, i, classes: name,
    }
    for form, line in forms.items():
        for classes in (2, 4, 64):
            lines = [line(name, i, classes) for i, name in enumerate(photos)]
            (folder / f"paddle-{form}-{classes}.txt").write_text("\n".join(lines * 16) + "\n")

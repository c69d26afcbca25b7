"""Looks at what a wheel brings: `check_wheel.py GLIBC WHEEL`.

No symbol of a glibc that is newer, no library but the C library's own and libgcc_s, no symbols of
the linker, an executable that may be executed, and the files of the package. Prints the sizes of
the wheel, of its large members, and of their sections.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ALLOWED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
ALLOWED |= {"libdl.so.2", "libpthread.so.0", "librt.so.1"}  # parts of glibc before 2.34
HELPER = "featherload/_bin/featherload"
FILES = ["featherload/py.typed", "featherload/__init__.py", "featherload/_featherload.pyi"]


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def faults(path: Path, most: str) -> list[str]:
    symbols = subprocess.run(
        ["objdump", "-T", path], capture_output=True, text=True, check=True
    ).stdout
    dynamic = subprocess.run(
        ["readelf", "-d", path], capture_output=True, text=True, check=True
    ).stdout
    versions = set(re.findall(r"GLIBC_([0-9.]+)", symbols))
    found = [f"needs GLIBC_{v}" for v in versions if number(v) > number(most)]
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
    found += [f"needs {library}" for library in needed - ALLOWED]
    if any(name == ".symtab" for _, name in sections(path)):
        found.append("has symbols, which make the wheel larger: strip it")
    if not versions or not needed:
        found.append("has no dynamic symbols: nothing was looked at")
    return found


def sections(path: Path) -> list[tuple[int, str]]:
    """Bytes and names of the sections that a file has, the largest first."""
    listed = subprocess.run(
        ["readelf", "-SW", path], capture_output=True, text=True, check=True
    ).stdout
    row = re.compile(r"\] (\.\S+)\s+(\S+)\s+\S+\s+\S+\s+([0-9a-f]+)\s")
    found = [(int(size, 16), name) for name, kind, size in row.findall(listed) if kind != "NOBITS"]
    return sorted(found, reverse=True)


def main(most: str, wheel: str) -> int:
    wrong = []
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = archive.namelist()
        wrong += [f"{name} is missing" for name in [HELPER, *FILES] if name not in names]
        # `_featherload.abi3.so`, or with the tag of one Python.
        extensions = [name for name in names if name.endswith(".so")]
        if [name.split(".")[0] for name in extensions] != ["featherload/_featherload"]:
            wrong.append(f"the extension is to be one file, and there are {extensions}")
        for name in [*extensions, *(name for name in names if name == HELPER)]:
            path = Path(archive.extract(name, folder))
            wrong += [f"{name} {fault}" for fault in faults(path, most)]
            if not archive.getinfo(name).external_attr >> 16 & 0o111:
                wrong.append(f"{name} may not be executed")
            info = archive.getinfo(name)
            parts = ", ".join(f"{part} {size / (1 << 20):.1f}" for size, part in sections(path)[:6])
            packed, whole = info.compress_size / (1 << 20), info.file_size / (1 << 20)
            print(f"{name}: {packed:.1f} of {whole:.1f} MiB; {parts}")
    for line in sorted(wrong):
        print(f"{wheel}: {line}", file=sys.stderr)
    if not wrong:
        size = Path(wheel).stat().st_size / 1_000_000
        print(f"{wheel}: {size:.1f} MB, glibc {most} and later")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Packs a folder of goldens in a tar. The same files give the same bytes.

    pack.py FOLDER TAR           writes TAR
    pack.py FOLDER TAR --check   compares with TAR, and exits with 1 when a file differs
"""

import io
import sys
import tarfile
from pathlib import Path


def packed(folder):
    out = io.BytesIO()
    files = sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file())
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in files:
            data = (folder / name).read_bytes()
            # Owner, time and mode are the defaults of tarfile: 0, 0 and 0644.
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def contents(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def main():
    folder, path, *check = sys.argv[1:]
    path = Path(path)
    made = packed(Path(folder))
    if not check:
        path.write_bytes(made)
        return
    kept = path.read_bytes()
    if kept == made:
        print(f"{path} would not change")
        return
    old, new = contents(kept), contents(made)
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            how = "is new" if name not in old else "is gone" if name not in new else "differs"
            print(f"{path}: {name} {how}")
    if old == new:
        print(f"{path}: the same files in another packing: write it again")
    sys.exit(1)


if __name__ == "__main__":
    main()

"""What scripts/notebooks runs, and python/tests/test_notebooks.py imports."""

import argparse
import asyncio
import shutil
import sys
import time
import warnings
from pathlib import Path

import nbclient
import nbformat

NOTEBOOKS = Path(__file__).parent.parent / "docs" / "quickstart"
# The gate runs these two: a loader of images, and one of rays. The weekly workflow runs all.
GATE = ("classification", "nerf")
# A notebook promises less than this. It is reported and fails nothing, since machines differ.
PROMISED_SECONDS = 60
# A cell that takes longer fails.
CELL_SECONDS = 300


def names():
    """The notebooks of the folder."""
    return sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


def execute(name, folder):
    """Runs a notebook in `folder`, which must be empty. Returns the executed copy."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            without_folder(output, f"{folder}/")
    return notebook


def without_folder(part, folder):
    """Makes the paths in an output relative, so that copies do not depend on the machine."""
    for key, value in part.items():
        if isinstance(value, str):
            part[key] = value.replace(folder, "")
        elif isinstance(value, dict):
            without_folder(value, folder)


def run(name, out):
    """Runs a notebook, prints its seconds, and writes the executed copy. Whether it succeeded."""
    folder = out / "data" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began = time.monotonic()
    try:
        notebook = execute(name, folder)
    except (nbclient.exceptions.CellExecutionError, nbclient.exceptions.CellTimeoutError) as error:
        print(f"{name}: failed\n{error}", file=sys.stderr)
        return False
    finally:
        shutil.rmtree(folder)
    seconds = time.monotonic() - began
    late = f", more than {PROMISED_SECONDS} s" if seconds > PROMISED_SECONDS else ""
    print(f"{name:24} {seconds:5.1f} s{late}", flush=True)
    nbformat.write(notebook, out / f"{name}.ipynb")
    return True


def main():
    parser = argparse.ArgumentParser(prog="scripts/notebooks")
    parser.add_argument("--all", action="store_true", help="run all notebooks")
    parser.add_argument("--out", type=Path, required=True, help="folder for executed copies")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names()))
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(names()))
    if unknown:
        parser.error(f"no notebook {unknown[0]}: give one of {', '.join(names())}")
    # asyncio's loop in Jupyter warns on some versions of Python.
    warnings.simplefilter("ignore")
    asyncio.set_event_loop(asyncio.new_event_loop())
    out = options.out.absolute()
    chosen = names() if options.all else options.names or GATE
    failed = [name for name in chosen if not run(name, out)]
    sys.exit(f"notebooks: {', '.join(failed)} failed" if failed else 0)


if __name__ == "__main__":
    main()

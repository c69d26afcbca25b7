"""The tools of the command line as functions. ``plan`` runs in this process. The others run the
executable of the package as a separate process, and return the values of its ``--json``."""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

from . import _items, _options, _request
from ._flags import flags
from ._helper import run_json
from ._loader import Loader
from ._reports import Doctor, IndexReport, Plan, Rss
from ._values import argument_text, whole

_Path = str | os.PathLike[str]


def _with_recipe(
    command: Sequence[str], recipe: Any, dtype: Any, options: dict[str, Any], tail: Sequence[str]
) -> Any:
    """Runs a command with a recipe of any kind."""
    found = _options.recipe_options(recipe, dtype)
    if options.pop("shuffle", None) is False:
        options["no_shuffle"] = True
    if "device" in options:
        options["device"] = _options.device_name(options["device"])
    with tempfile.TemporaryDirectory(prefix="featherload-") as folder:
        name = found.get("recipe")
        if name is None:
            name = os.path.join(folder, "recipe.json")
            with open(name, "w", encoding="utf-8") as file:
                file.write(found["recipe_text"])
        said = ["--recipe", name, *flags({"dtype": found.get("dtype"), **options})]
        return run_json([*command, *said, *tail])


def plan(
    src: _items.Source | None = None,
    recipe: Any = "train224",
    batch_size: int | None = None,
    num_workers: int | None = None,
    **options: Any,
) -> Plan:
    """The plan of ``Loader`` with the same keywords: memory of all processes and on the device,
    batches, the order of operations. Reads only headers; decodes and starts nothing.

    Without ``src``, the plan is for images of 1,920 x 1,080. Raises the errors that ``Loader``
    would raise about keywords and the data set.
    """
    said = inspect.signature(Loader).bind(src, recipe, batch_size, num_workers, **options)
    said.apply_defaults()
    return _request.checked(said.arguments).plan()


def rss(
    src: _Path,
    recipe: Any = "train224",
    num_workers: int | Iterable[int] = (1, 2, 4, 8),
    *,
    dtype: Any = None,
    **options: Any,
) -> Rss:
    """Measures the memory of all processes for each number of workers, for 5 seconds each."""
    several = num_workers if isinstance(num_workers, Iterable) else [num_workers]
    counts = [str(whole("num_workers", count, 1)) for count in several]
    options["num_workers"] = ",".join(counts)
    return Rss(_with_recipe(["rss"], recipe, dtype, options, [argument_text("src", src)]))


def index(src: _Path, **options: Any) -> IndexReport:
    """Counts samples, classes, formats, sizes and unreadable files of a data set.

    ``options``: keywords of ``Loader`` for reading a source, such as ``labels`` and ``fetch_dir``,
    and ``objects`` in files, a column or members.
    For tar shards in an object store, downloads each shard once. With ``share=True``, also uploads
    the resulting index to the folder of the shards, where other machines find it.
    """
    return IndexReport(run_json(["index", *flags(options), argument_text("src", src)]))


def doctor(src: _Path | None = None) -> Doctor:
    """Checks this machine, and reports the consequences for a run. With ``src``, also checks the
    data set.
    """
    # Exit code 1: something that a run needs is missing. The report names it.
    return Doctor(
        run_json(["doctor", *([] if src is None else [argument_text("src", src)])], accept=(0, 1))
    )

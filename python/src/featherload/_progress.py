"""Progress bars by tqdm, if it is installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._batch import Batch
    from ._loader import Loader


def tqdm(**options: Any) -> Any | None:
    """A bar for a terminal or a notebook, or None without tqdm."""
    try:
        made = importlib.import_module("tqdm.auto")
    except ImportError:
        return None
    return made.tqdm(**options)


def bar(loader: Loader, options: dict[str, Any]) -> Iterator[Batch]:
    """The batches of the next epoch. The bar counts the rows of this rank."""
    shown = None
    before = loader.stats()
    try:
        for batch in loader:
            if shown is None:
                said = {
                    "total": len(loader) * loader.batch_size,
                    "initial": batch.number * loader.batch_size,
                    "unit": " images",
                    "desc": f"epoch {batch.epoch}",
                    **options,
                }
                shown = tqdm(**said)
            yield batch
            if shown is not None:
                now = loader.stats()
                shown.set_postfix(_words(before, now), refresh=False)
                shown.update(len(batch._of_loader))
        if shown is not None:
            # The last batch may have fewer rows.
            shown.total = shown.n
    finally:
        # Also when the loop is left early.
        if shown is not None:
            shown.close()


class Steps:
    """A bar for each phase of a build."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._bar: Any = None
        self._phase = ""

    def __enter__(self) -> Steps:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def tell(self, progress: dict[str, Any]) -> None:
        if not self._shown:
            return
        if self._phase != progress["phase"]:
            self._phase = progress["phase"]
            self.__exit__()
            self._bar = tqdm(
                total=progress["samples"],
                initial=progress["done"],
                desc=self._phase,
                unit=" samples",
            )
        if self._bar is not None:
            self._bar.update(progress["done"] - self._bar.n)


def _words(before: dict[str, Any], now: dict[str, Any]) -> dict[str, str]:
    waited = now["consumer_wait_s"] - before["consumer_wait_s"]
    worked = now["consumer_s"] - before["consumer_s"]
    return {"waits": f"{waited / max(waited + worked, 1e-9):.0%}"}

"""What accelerate asks of a loader that is none of torch's: the end of each epoch, so that a
last accumulation that is not full still takes its step, and the rows of the last batch that
``gather_for_metrics`` keeps."""

from __future__ import annotations

import logging
import sys
from typing import Any

_log = logging.getLogger("featherload")


def _state() -> Any:
    module = sys.modules.get("accelerate.state")
    if module is None or not module.GradientState._shared_state:
        return None
    return module.GradientState()


def begin(loader: Any) -> None:
    """The loader is the one whose end counts."""
    state = _state()
    if state is not None:
        state._add_dataloader(loader)


def remainder(loader: Any, raw: Any) -> int:
    """Rows that accelerate keeps of the last batch of all ranks, which stand one rank behind the
    other. 0: all of them; -1: accelerate keeps all, and does not know that some are repeated.
    """
    _, ranks = loader._place
    if not raw.ends_epoch or loader.drop_last or loader._pads or _state() is None:
        return -1
    left: int = loader._stream.positions() - raw.samples_before
    repeated = ranks * len(raw) - left
    if not 0 <= repeated < ranks:
        return -1
    if repeated == 0:
        return 0
    # They are the last rows of the last ranks: at the end only where all others stand before.
    if repeated == 1 or len(raw) == 1:
        return left
    _log.warning(
        "%d rows of the last batch of all ranks are repeated samples, and gather_for_metrics keeps "
        "them: leave the rows of batch.repeated out",
        repeated,
    )
    return -1


def end(loader: Any) -> None:
    state = _state()
    if state is not None and loader in state.dataloader_references:
        state._remove_dataloader(loader)

"""What accelerate reads from a loader that is not torch's. It reads the end of each epoch, so that
an incomplete last accumulation still takes its step. It also reads how many rows of the last batch
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
    """Registers the loader: its end is the end of the epoch."""
    state = _state()
    if state is not None:
        state._add_dataloader(loader)


def remainder(loader: Any, raw: Any) -> int:
    """Rows of the last batch that accelerate keeps, over all ranks in their order. 0: the batch is
    full, and accelerate keeps all rows. -1: not the last batch, or accelerate keeps all rows.
    """
    _, ranks = loader._place
    if not raw.ends_epoch or loader.drop_last or loader._pads or _state() is None:
        return -1
    if loader._kept_of_last is not None:
        return int(loader._kept_of_last)
    left: int = loader._stream.samples_of_all_ranks(raw.epoch, raw.samples_before)
    repeated = ranks * len(raw) - left
    if not 0 <= repeated < ranks:
        return -1
    # Repeated rows are the last row of the last ranks. They are at the end only in these cases.
    # Also without repeated rows the number counts: a loss is gathered once per row of a full batch.
    if repeated <= 1 or len(raw) == 1:
        return left if repeated or len(raw) < loader.batch_size else 0
    _log.warning(
        "%d rows of the last batch of all ranks are repeated samples, and gather_for_metrics keeps "
        "them: use featherload.accelerate.DataLoader, or leave out the rows of batch.repeated",
        repeated,
    )
    return -1


def end(loader: Any) -> None:
    state = _state()
    if state is not None and loader in state.dataloader_references:
        state._remove_dataloader(loader)

"""A run that stops in the middle of an epoch and goes on in another process.

    python resume.py PHOTOS

The state is a dict of numbers and texts: keep it beside the model's.
"""

from __future__ import annotations

import json
import sys

import featherload


def main(photos: str) -> None:
    whole = featherload.Loader(photos, batch_size=32)
    everything = [batch.ids.tolist() for batch in whole]

    first = featherload.Loader(photos, batch_size=32, num_workers=2)
    seen = []
    for batch in first:
        seen.append(batch.ids.tolist())
        if batch.number == 2:
            break
    saved = json.dumps(first.state_dict())
    first.close()

    # Any number of workers.
    second = featherload.Loader(photos, batch_size=32, num_workers=1)
    second.load_state_dict(json.loads(saved))
    seen += [batch.ids.tolist() for batch in second]
    assert seen == everything
    print(f"{len(seen)} batches, the same as in one go")


if __name__ == "__main__":
    main(sys.argv[1])

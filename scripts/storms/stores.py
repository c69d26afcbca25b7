"""Runs whose shards come from a store: the store answers wrongly, fetchers are killed, and fetched
files are changed on disk."""

import os
import shutil
import signal
import time

import processes
from runs import Outcome, Run
from web import serving

# The faults of the web server, and the endings of the file names that each one applies to.
WRONG = {
    "breaks off": ".tar",
    "changes a byte": ".tar",
    "has no ranges": ".tar",
    "is busy": "",
    "keeps the size to itself": "",
    "leads in a circle": "",
    "leads to a link-local address": "",
    "leads to another host": "",
    "refuses": "",
    "refuses with a large body": "",
    "sends another range": ".tar",
    "sends slowly": "",
    "sends without end": ".json",
}
# Faults that a retry can mend. They do not last, since a run may retry for minutes.
HEALS = ("breaks off", "has no ranges", "is busy")
# A starting run retries for this many seconds. Then it gives up, and ends within GRACE_S.
PATIENCE_S = 15.0
# The most memory of a process, whatever the store sends.
MOST_MIB = 160


def storm_answers(world, dice):
    """a web server answers wrongly: once, a few times, or always"""
    wrong = dice.choice(list(WRONG))
    times = dice.choice((1, 1, 2, 5, 5 if wrong in HEALS else -1))
    with serving(world.shards, wrong, WRONG[wrong], times) as server:
        words, run = _fetching(world, server.address)
        most = 0
        while run.sleep(0.02):
            most = max([most, *map(processes.peak, run.tree())])
            if time.monotonic() > run.disturbed + PATIENCE_S + 5.0:
                break
        outcome = run.finish(world.usual(words))
        outcome.count("wrong answers", server.done)
    if most > MOST_MIB << 20:
        outcome.problems.append(f"MEMORY: a process took {most >> 20} MiB")
    outcome.problems = [f"{p} [it {wrong}, {times} times]" for p in outcome.problems]
    return outcome


def storm_fetchers(world, dice):
    """the fetcher process is killed or stopped, at any moment from its start"""
    with serving(world.shards, "sends slowly", "", -1) as server:
        words, run = _fetching(world, server.address)
        sent = 0
        run.await_role("fetcher")
        for _ in range(dice.randrange(1, 5)):
            run.sleep(dice.uniform(0, 0.15))
            if found := run.of_role("fetcher"):
                number = dice.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGABRT, signal.SIGSTOP))
                sent += run.send(dice.choice(found), number)
        # Processes that wait for a stopped fetcher kill it after a second.
        outcome = run.finish(world.usual(words), extra=PATIENCE_S)
        outcome.count("signals to fetchers", sent)
    if any(text.startswith("error") for text in outcome.texts):
        outcome.problems.append(f"ENDED: a fetcher's death must end no run: {outcome.texts}")
    return outcome


def storm_fetched(world, dice):
    """fetched shards are changed on disk between two runs"""
    fetched = world.folder / "fetched"
    shutil.rmtree(fetched, ignore_errors=True)
    outcome, changed = Outcome(), 0
    for turn in range(2):
        words, run = _fetching(world, f"file://{world.shards}", fetched)
        outcome.add(run.finish(world.usual(words), extra=1.0))
        shards = sorted(fetched.rglob("*.tar"))
        if not shards:
            outcome.problems.append(f"WRONG: no shard lies in {fetched}")
        for shard in dice.sample(shards, min(len(shards), dice.randrange(1, 3))):
            if turn == 0:
                _change(shard, dice)
                changed += 1
    outcome.count("shards changed", changed)
    return outcome


def _change(shard, dice):
    """Changes a byte of the file, shortens it or empties it. Its time is restored at random."""
    seen = shard.stat()
    shard.chmod(0o644)
    how = dice.choice(("byte", "byte", "cut", "empty"))
    if how == "byte":
        with shard.open("r+b") as file:
            at = dice.randrange(seen.st_size)
            file.seek(at)
            old = file.read(1)[0]
            file.seek(at)
            file.write(bytes([old ^ dice.randrange(1, 256)]))
    else:
        os.truncate(shard, dice.randrange(seen.st_size) if how == "cut" else 0)
    if dice.random() < 0.5:
        os.utime(shard, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def _fetching(world, address, fetched=None):
    """The words and the run of a bench over the cache at `address`. The cache on disk gives the
    expected report."""
    if fetched is None:
        fetched = world.folder / "fetched"
        shutil.rmtree(fetched, ignore_errors=True)
    here = world.bench(2, world.shards)
    words = [*world.bench(2, address), "--fetch-dir", fetched]
    key = tuple(map(str, words))
    world.truths[key], world.times[key] = world.truth(here), world.usual(here)
    return words, Run(world, words)

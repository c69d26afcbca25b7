"""Processes of a run are killed and stopped at random moments, alone and in bursts."""

import filecmp
import shutil
import signal
import time

from runs import Outcome, Run

KILLS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT)
STOP, GO = signal.SIGSTOP, signal.SIGCONT
# The pool kills a worker that is stopped for this many seconds.
STOPPED_S = 1.0


def storm_workers(world, dice):
    """many workers of one run are killed, which must not change the stream"""
    words = world.bench(world.epochs_for(1.0))
    usual = world.usual(words)
    run = Run(world, words)
    sent = 0
    run.await_role("worker")
    # A death by a signal gives the worker's row a strike. Most are SIGKILL, which counts least.
    most = dice.randrange(20, 120)
    while sent < most and run.sleep(dice.expovariate(1 / 0.006)):
        workers = run.of_role("worker")
        if workers and run.send(dice.choice(workers), dice.choice((*KILLS, signal.SIGKILL))):
            sent += 1
    outcome = run.finish(usual)
    outcome.count("signals to workers", sent)
    return outcome


def storm_stopped_workers(world, dice):
    """workers are stopped, and some are continued"""
    words = world.bench(world.epochs_for(0.3))
    usual = world.usual(words)
    run = Run(world, words)
    run.await_role("worker")
    stopped = []
    for _ in range(dice.randrange(1, 4)):
        run.sleep(dice.uniform(0, 0.1))
        workers = run.of_role("worker")
        if workers and run.send(process := dice.choice(workers), STOP):
            stopped.append(process)
    if dice.random() < 0.5:
        run.sleep(dice.uniform(0, 1.5))
        for process in stopped:
            run.send(process, GO)
    outcome = run.finish(usual, extra=STOPPED_S * len(stopped))
    outcome.count("workers stopped", len(stopped))
    return outcome


def storm_coordinator(world, dice):
    """the coordinator is killed"""
    return _one(world, dice, "coordinator", (*KILLS, signal.SIGTERM))


def storm_consumer(world, dice):
    """the process that builds the loader is killed"""
    signals = (*KILLS, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    return _one(world, dice, "consumer", signals)


def _one(world, dice, role, signals):
    words = world.bench(world.epochs_for(0.04))
    usual = world.usual(words)
    run = Run(world, words)
    process = run.await_role(role)
    # A signal after the end kills nothing, and the usual time includes the start of the run.
    run.sleep(dice.uniform(0, usual * 0.6))
    number = dice.choice(signals)
    sent = bool(process) and run.send(process, number)
    outcome = run.finish(usual)
    outcome.count(f"{role}s killed", int(sent))
    return outcome


def storm_stopped_coordinator(world, dice):
    """the coordinator is stopped, alone or with a dead worker, and is sometimes continued"""
    words = world.bench(world.epochs_for(0.2))
    usual = world.usual(words)
    run = Run(world, words)
    process = run.await_role("coordinator")
    run.sleep(dice.uniform(0, usual))
    sent = bool(process) and run.send(process, STOP)
    if dice.random() < 0.5:
        for worker in run.of_role("worker")[: dice.randrange(1, 3)]:
            run.send(worker, signal.SIGKILL)
    if sent and dice.random() < 0.5:
        run.sleep(dice.uniform(0, 1.0))
        run.send(process, GO)
    # A coordinator that is stopped while it starts has more time: the limit is five seconds.
    outcome = run.finish(usual, extra=2.0)
    outcome.count("coordinators stopped", int(sent))
    return outcome


def storm_stopped_consumer(world, dice):
    """the process that builds the loader is stopped, then continued or killed"""
    words = world.bench(world.epochs_for(0.1))
    usual = world.usual(words)
    run = Run(world, words)
    process = run.await_role("consumer")
    run.sleep(dice.uniform(0, usual))
    sent = bool(process) and run.send(process, STOP)
    # Meanwhile the other processes run, or one of them dies.
    others = run.of_role("worker", "coordinator")
    if others and dice.random() < 0.3:
        run.send(dice.choice(others), dice.choice(KILLS))
    time.sleep(dice.uniform(0, 0.5))
    if sent:
        run.send(process, GO if dice.random() < 0.7 else signal.SIGKILL)
    outcome = run.finish(usual)
    outcome.count("consumers stopped", int(sent))
    return outcome


def storm_burst(world, dice):
    """several signals at once, to any processes of a run"""
    words = world.bench(world.epochs_for(0.1))
    usual = world.usual(words)
    run = Run(world, words)
    run.sleep(dice.uniform(0, usual))
    family = run.tree()
    sent = 0
    stopped = []
    for _ in range(dice.randrange(2, 12) if family else 0):
        process = dice.choice(family)
        number = dice.choice((*KILLS, STOP))
        if run.send(process, number):
            sent += 1
            stopped += [process] if number == STOP else []
    run.sleep(dice.uniform(0, 0.3))
    # Only workers are killed when they stay stopped: continue the others.
    for process in stopped:
        if process.role(world.binary) != "worker":
            run.send(process, GO)
    outcome = run.finish(usual, extra=STOPPED_S * len(stopped))
    outcome.count("signals in bursts", sent)
    return outcome


def storm_builder(world, dice):
    """a cache build is killed, often more than once; then the same command completes the cache"""
    jpeg = ("--resize", "shorter:40", "--encode", "jpeg:85")
    how = dice.choice(((), jpeg, ("--encode", "raw")))
    words = ["cache", "build", world.pictures, "--labels", "none", "--shard-size", "60000B"]
    words += ["--num-workers", "2", *how]
    want = world.folder / f"built-{'-'.join(how).replace(':', '') or 'copy'}"
    if not want.exists():
        world.call(*words[:3], want, *words[3:])
    target = world.folder / "building"
    shutil.rmtree(target, ignore_errors=True)
    command = [*words[:3], target, *words[3:]]
    if ("build", *how) not in world.times:
        world.times["build", *how] = _timed(world, command, target)
    usual = world.times["build", *how]
    total = Outcome()
    for _ in range(dice.randrange(1, 5)):
        run = Run(world, command)
        run.sleep(dice.uniform(0, usual))
        family = run.tree()
        # Mostly the builder itself, else any process of the run.
        victim = None
        if family:
            victim = family[0] if dice.random() < 0.7 else dice.choice(family)
        sent = bool(victim) and run.send(victim, dice.choice((*KILLS, signal.SIGTERM)))
        total.add(run.finish(usual))
        total.count("builders killed", int(sent))
        if total.problems:
            return total
    last = Run(world, command).finish(usual)
    total.add(last)
    if not any(text.startswith("done") for text in last.texts):
        total.problems.append(f"WRONG: the last build ended with {last.texts}")
    elif problem := _other(want, target):
        total.problems.append(f"WRONG: {problem}")
    total.problems = [f"{p}; {' '.join(map(str, command))}" for p in total.problems]
    return total


def _timed(world, command, target):
    began = time.monotonic()
    world.call(*command)
    took = time.monotonic() - began
    shutil.rmtree(target)
    return took


def _other(want, found):
    """The difference between two folders as text, or None. Hidden files count too."""
    names = [sorted(p.name for p in folder.iterdir()) for folder in (want, found)]
    if names[0] != names[1]:
        return f"files {sorted(set(names[0]) ^ set(names[1]))}"
    _, other, errors = filecmp.cmpfiles(want, found, names[0], shallow=False)
    return f"contents of {other + errors}" if other or errors else None


def storm_store(world, dice):
    """runs that share a scene's store lose processes, also the one that makes the store"""
    meet = world.folder / "meet"
    meet.mkdir(exist_ok=True)
    kinds = [dice.choice(("rays", "views")) for _ in range(dice.randrange(1, 4))]
    # Long enough to find the stores of other runs. A short run would end before that.
    all_words = [world.steps(kind, 1500 if kind == "rays" else 4000) for kind in kinds]
    usual = sum(world.usual(words) for words in all_words)
    runs = []
    for words in all_words:
        runs.append(Run(world, words, shared=meet))
        runs[-1].sleep(dice.uniform(0, 0.03))
    total = Outcome()
    for _ in range(dice.randrange(1, 4)):
        time.sleep(dice.uniform(0, 0.05))
        run = dice.choice(runs)
        if family := run.tree():
            total.count("processes killed", int(run.send(dice.choice(family), dice.choice(KILLS))))
    for run in runs:
        total.add(run.finish(usual))
    # The next run removes the files that killed processes left, and its own files.
    words = world.steps("views", 20)
    total.add(Run(world, words, shared=meet).finish(world.usual(words)))
    # An empty lock file may stay. Lists of guests may not.
    left = [p for p in meet.rglob("*") if p.is_file() and p.stat().st_size > 0]
    if left:
        total.problems.append(f"LEFT: where stores are found: {[str(p) for p in left]}")
        shutil.rmtree(meet)
    return total

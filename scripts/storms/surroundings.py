"""Runs in environments that lack something: a full stderr, a full disk, few descriptors, no /proc,
files that disappear while they are read."""

import fcntl
import functools
import os
import re
import resource
import shutil
import signal
import subprocess
import time

import processes
from runs import Outcome, Run, skip


@functools.cache
def allowed(*flags):
    """None when a namespace of this kind can be made, else the reason as text."""
    try:
        done = subprocess.run(["unshare", *flags, "true"], capture_output=True, text=True)
    except OSError as error:
        return f"unshare: {error.strerror}"
    return None if done.returncode == 0 else (done.stderr.strip() or "unshare fails")


def with_mounts():
    """The words that run a command with its own mounts, and None; or None and the reason."""
    for flags in (("-m",), ("-U", "-r", "-m")):
        reason = allowed(*flags)
        if reason is None:
            return ["unshare", *flags], None
    return None, reason


def storm_full_stderr(world, dice):
    """stderr is a full pipe without a reader, while workers die"""
    reader, writer = os.pipe()
    size = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, b"x" * (size - dice.choice((0, 0, 1, 100, 3000))))
    words = world.bench(world.epochs_for(0.3))
    usual = world.usual(words)
    run = Run(world, words, stderr=writer)
    os.close(writer)
    run.await_role("worker")
    sent = 0
    for _ in range(dice.randrange(0, 40)):
        if not run.sleep(dice.expovariate(1 / 0.008)):
            break
        family = run.of_role("worker") if dice.random() < 0.97 else run.tree()
        if family:
            number = dice.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGABRT))
            sent += run.send(dice.choice(family), number)
    # The caller's process may wait until its last output is read, as any program does. All other
    # processes must have ended by then.
    waits = False
    while run.sleep(0.05) and not waits:
        waits = len(run.tree()) == 1 and processes.waits_in(run.child.pid) == "anon_pipe_write"
        if time.monotonic() > run.disturbed + world.row_limit_s + 5 * usual:
            break
    if waits:
        os.read(reader, 1 << 20)
        run.note()
    outcome = run.finish(usual)
    os.close(reader)
    outcome.count("signals with a full stderr", sent)
    outcome.count("last words that waited for a reader", int(waits))
    return outcome


def storm_full_disk(world, dice):
    """a cache is built onto a disk that fills up, and then onto one with room"""
    mounts, reason = with_mounts()
    if mounts is None:
        return skip(reason)
    small = dice.choice((4, 16, 60, 100, 160, 240))
    script = (
        'b=$1 d=$2 s=$3; mount -t tmpfs -o size="$4"k none "$d" || exit 99; '
        'build() { "$b" cache build "$s" "$d/c" --labels none --shard-size 60000B --num-workers 2; }; '
        'build; first=$?; [ "$first" = 0 ] || [ "$first" = 3 ] || [ "$first" = 2 ] || exit 98; '
        'mount -o remount,size=20m "$d" || exit 99; '
        'build && "$b" cache verify "$d/c" >&2 || exit 97; '
        'cd "$d/c" && ls -A >&2 && exit "$first"'
    )
    target = world.folder / "small-disk"
    target.mkdir(exist_ok=True)
    arguments = [str(world.binary), str(target), str(world.pictures), str(small)]
    wrap = [*mounts, "sh", "-c", script, "sh", *arguments, "cache"]
    run = Run(world, ["disk"], wrap=wrap)
    outcome = Outcome()
    if not run.sleep(30):
        code = run.child.returncode
    else:
        code = "HANG"
        run.end_all()
    said = run.said()
    run.leftovers(outcome)
    if code not in (0, 2, 3):
        outcome.problems.append(f"WRONG: {small} KiB of disk: {code}: {said[-600:]}")
    elif code and not re.search("No space left|are available", said):
        outcome.problems.append(f"WRONG: {small} KiB of disk, not in the error: {said[-600:]}")
    else:
        outcome.texts.append("full, then whole" if code else "same files")
    return outcome


def storm_full_store(world, dice):
    """a scene's images must go into a file, but the disk has no room"""
    small = dice.choice((4, 16, 40, 48, 52, 64))
    target = world.folder / "small-disk"
    target.mkdir(exist_ok=True)
    words = world.steps("rays", 50, "--store-folder", target, "--own-store")
    # Too little memory for the images.
    words += ["--memory-limit", world.least_memory(words) + 2000]
    usual = world.usual(words)
    if dice.random() < 0.5:
        limits = [(resource.RLIMIT_FSIZE, small << 10)]
        return Run(world, words, limits=limits).finish(usual)
    mounts, reason = with_mounts()
    if mounts is None:
        return skip(reason)
    script = 'mount -t tmpfs -o size="$1"k none "$2" || exit 99; shift 2; exec "$@"'
    wrap = [*mounts, "sh", "-c", script, "sh", str(small), str(target)]
    return Run(world, words, wrap=wrap).finish(usual)


def storm_file_size(world, dice):
    """the size of files has a small limit"""
    limit = dice.choice((1000, 20000, 80000, 400000))
    if dice.random() < 0.3:
        words = world.bench(8, world.shards)
    else:
        target = world.folder / "limited"
        shutil.rmtree(target, ignore_errors=True)
        words = ["cache", "build", world.pictures, target, "--labels", "none", "--num-workers", "2"]
    run = Run(world, words, limits=[(resource.RLIMIT_FSIZE, limit)])
    return run.finish(1.0)


def _copy(world):
    folder = world.folder / "moved"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(folder.with_name("moved-away"), ignore_errors=True)
    shutil.copytree(world.pictures, folder)
    return folder


def storm_lost_file(world, dice):
    """files of the set disappear, shrink or change while they are read"""
    folder = _copy(world)
    epochs = world.epochs_for(0.2)
    words = world.bench(epochs, folder)
    world.truths[tuple(map(str, words))] = world.truth(world.bench(epochs))
    usual = world.usual(world.bench(epochs))
    run = Run(world, words)
    files = sorted(folder.iterdir())
    # A file that disappears before the names are read is not in the set: wait for a worker.
    run.await_role("worker")
    run.sleep(dice.uniform(0, usual * 0.6))
    number = dice.choice((1, 1, 2, len(files)))
    how = dice.choice(("unlink", "truncate", "empty", "folder", "fifo", "rename back"))
    for path in dice.sample(files, number):
        if how == "truncate":
            os.truncate(path, dice.randrange(0, path.stat().st_size))
        elif how == "empty":
            os.truncate(path, 0)
        elif how == "rename back":
            away = path.with_suffix(".away")
            path.rename(away)
            away.rename(path)
        else:
            path.unlink()
            if how == "folder":
                path.mkdir()
            elif how == "fifo":
                os.mkfifo(path)
        run.note()
    outcome = run.finish(usual)
    outcome.count("files disturbed", number)
    outcome.problems = [f"{p} [{how} of {number}]" for p in outcome.problems]
    return outcome


def storm_lost_root(world, dice):
    """the folder of the set is renamed in the middle of a run, for good or for a moment"""
    folder = _copy(world)
    epochs = world.epochs_for(0.2)
    words = world.bench(epochs, folder)
    world.truths[tuple(map(str, words))] = world.truth(world.bench(epochs))
    usual = world.usual(world.bench(epochs))
    run = Run(world, words)
    run.sleep(dice.uniform(0, usual * 0.6))
    away = folder.with_name("moved-away")
    folder.rename(away)
    run.note()
    if dice.random() < 0.3:
        run.sleep(dice.choice((0, 0.001, 0.05)))
        away.rename(folder)
    return run.finish(usual)


def storm_few_files(world, dice):
    """a process may open few files: `ulimit -n`"""
    limit = dice.choice((32, dice.randrange(3, 33)))
    kind = dice.choice(("bench", "bench", "rays", "shards"))
    if kind == "rays":
        words = world.steps("rays", 100, "--own-store")
    else:
        words = world.bench(8, world.shards if kind == "shards" else None)
    usual = world.usual(words)
    run = Run(world, words, limits=[(resource.RLIMIT_NOFILE, limit)])
    outcome = run.finish(usual)
    outcome.texts = [
        f"{text} (of {limit} files)" if limit == 32 else text for text in outcome.texts
    ]
    return outcome


def _surrounded(world, dice, script, flags=None):
    if flags is None:
        wrap, reason = with_mounts()
    else:
        wrap, reason = ["unshare", *flags], allowed(*flags)
    if reason is not None:
        return skip(reason)
    kind = dice.choice(("bench", "rays", "views", "shards"))
    if kind in ("rays", "views"):
        words = world.steps(kind, 200)
    else:
        words = world.bench(30, world.shards if kind == "shards" else None)
    if script:
        wrap = [*wrap, "sh", "-c", f'{script} || exit 99; exec "$@"', "sh"]
    usual = world.usual(words)
    run = Run(world, words, wrap=wrap)
    run.sleep(dice.uniform(0, usual))
    family = run.of_role("worker")
    if family and dice.random() < 0.5:
        run.send(dice.choice(family), signal.SIGKILL)
    return run.finish(usual, extra=1.0)


def storm_no_proc(world, dice):
    """the run has no /proc"""
    return _surrounded(world, dice, "mount -t tmpfs none /proc")


def storm_read_only_tmp(world, dice):
    """TMPDIR and the folders of indexes and stores are read-only"""
    script = (
        'mount -t tmpfs -o ro none "$TMPDIR" && mount -t tmpfs -o ro none "$XDG_CACHE_HOME" '
        '&& mount -t tmpfs -o ro none "$XDG_RUNTIME_DIR"'
    )
    return _surrounded(world, dice, script)


def storm_container(world, dice):
    """the run has its own user, mounts and process numbers, as in a container"""
    return _surrounded(world, dice, None, ("-U", "-r", "-p", "-f", "--mount-proc"))

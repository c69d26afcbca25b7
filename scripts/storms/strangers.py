"""Hostile inputs: a destination that is its own source, circles of links, names with terminal
control characters. Also unusual terminals and resource limits."""

import fcntl
import os
import pty
import resource
import shutil
import signal
import subprocess
import termios
import time

from runs import Outcome, Run

# Control characters of terminals. A name in the data must not print them.
ORDERS = ("\x1b", "\x9b", "\x07", "\x7f", "\u202e")
LIMITS = {
    # With less than the executable needs, the kernel cannot start it.
    "RLIMIT_AS": (100 << 20, 4 << 30),
    "RLIMIT_DATA": (4 << 20, 1 << 30),
    "RLIMIT_STACK": (64 << 10, 8 << 20),
    "RLIMIT_MEMLOCK": (0, 64 << 10),
    "RLIMIT_NOFILE": (10, 16),
    "RLIMIT_CPU": (60, 61),
}


def storm_own_source(world, dice):
    """a cache is built over its own source under another name"""
    folder = world.folder / "own-source"
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "c"
    of_pictures = dice.random() < 0.5
    shutil.copytree(world.pictures if of_pictures else world.shards, source)
    link = folder / "link"
    link.symlink_to(source, target_is_directory=True)
    names = [
        *(str(source), f"{source}/", f"{source}/../c", str(link), f"{folder}/./c//"),
        *(f"file://{source}", f"file://{link}", f"file://{source}/", f"file://{folder}/%63"),
    ]
    where = dice.choice(names[:5] if of_pictures else names)
    into = dice.choice(names) + dice.choice(("", "", "", "/below"))
    words = ["cache", "build", where, into, "--encode", "jpeg:70"]
    words += ["--labels", "none"] if of_pictures else []
    words += dice.choice(([], ["--force"]))
    before = _contents(source)
    outcome = Run(world, words).finish(2.0, keep=("featherload/fetched",))
    after = _contents(source)
    lost = [name for name, data in before.items() if after.get(name) != data]
    if lost:
        outcome.problems.append(f"LOST: {', '.join(sorted(lost)[:5])} [{where} into {into}]")
    if added := sorted(set(after) - set(before)):
        outcome.problems.append(f"ADDED: {', '.join(added[:5])} [{where} into {into}]")
    if "done" in outcome.texts:
        outcome.problems.append(f"TAKEN: {where} into {into} {words[-1]}")
    return outcome


def _contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def storm_links(world, dice):
    """folders that hold links to each other are scanned"""
    folder = world.folder / "links"
    shutil.rmtree(folder, ignore_errors=True)
    number = dice.choice((2, 3, 10, 30, 60))
    names = [folder / f"f{at:02}" for at in range(number)]
    for name in names:
        name.mkdir(parents=True)
    shutil.copy(min(world.pictures.iterdir()), names[-1] / "a.jpg")
    # Two forward links in each folder double the number of paths. Backward links make circles.
    for at, name in enumerate(names):
        forward = dice.random() < 0.7
        for label in "ab":
            to = min(at + 1, number - 1) if forward else dice.randrange(number)
            if to != at:
                (name / label).symlink_to(names[to], target_is_directory=True)
    run = Run(world, ["index", folder])
    outcome = run.finish(2.0)
    outcome.problems = [f"{p} [{number} folders]" for p in outcome.problems]
    return outcome


def storm_names(world, dice):
    """names and labels with terminal control characters are in error texts"""
    folder = world.folder / "names"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    order = dice.choice(ORDERS)
    name = f"a{order}[2Jb{dice.choice(('', 'x' * 200))}.jpg"
    kind = dice.choice(("missing", "broken", "label", "option", "class"))
    listed = folder / "list.txt"
    if kind == "class":
        (folder / name).mkdir()
        (folder / name / "a.jpg").write_bytes(b"no picture")
        words = ["bench", folder, "--recipe", "eval224"]
    elif kind == "option":
        words = ["bench", folder / name]
    else:
        listed.write_text(f'"{name}" {order if kind == "label" else 0}\n')
        if kind == "broken":
            (folder / name).write_bytes(b"no picture")
        words = ["bench", "--list", listed, "--root", folder, "--recipe", "eval224"]
    run = Run(world, words)
    run.sleep(10)
    said = run.said()
    outcome = run.finish(1.0)
    if orders := [o for o in ORDERS if o in said]:
        outcome.problems.append(f"RAW: {orders!r} is printed for a {kind}: {said[-300:]!r}")
    return outcome


def storm_limits(world, dice):
    """a process may have little memory, small stacks, few files"""
    name = dice.choice(list(LIMITS))
    low, high = LIMITS[name]
    limit = int(low * (high / low) ** dice.random()) if low else dice.randrange(low, high)
    words = world.bench(8, dice.choice((None, world.shards)))
    words += ["--sandbox", dice.choice(("auto", "require"))]
    run = Run(world, words, limits=[(getattr(resource, name), limit)])
    outcome = run.finish(world.usual(words))
    outcome.problems = [f"{p} [{name} {limit}]" for p in outcome.problems]
    return outcome


def storm_terminal(world, dice):
    """`preview` is interrupted at a terminal, whose settings it must restore"""
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    number = dice.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, None))

    def begin():
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    child = subprocess.Popen(
        [world.binary, "preview", world.pictures, "--recipe", world.recipe, "--rows", "1"],
        # Without the name of a file it asks the terminal, and writes its file in this folder.
        cwd=world.folder,
        stdin=slave, stdout=slave, stderr=slave, preexec_fn=begin,
        env=os.environ | {"FEATHERLOAD_HELPER": str(world.binary)},
    )  # fmt: skip
    outcome, began = Outcome(), time.monotonic()
    os.set_blocking(master, False)
    asked, due = False, began + dice.uniform(0, 0.3)
    while child.poll() is None and time.monotonic() < began + 10:
        try:
            os.read(master, 1 << 16)
        except BlockingIOError:
            time.sleep(0.002)
        asked = asked or termios.tcgetattr(slave) != before
        if number and time.monotonic() > due:
            child.send_signal(number)
            number = None
    if child.poll() is None:
        outcome.problems.append("HANG: preview still runs after 10 s")
        child.kill()
        child.wait()
    if termios.tcgetattr(slave) != before:
        outcome.problems.append("TERMINAL: its settings were not restored")
    outcome.texts.append("done" if child.returncode == 0 else f"ended with {child.returncode}")
    outcome.count("questions to the terminal", int(asked))
    os.close(master)
    os.close(slave)
    return outcome

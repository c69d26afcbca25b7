"""Finds the processes of a run in /proc, and sends signals to them and to no other process."""

import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path

# A variable in the environment of every process of a run. Children inherit it.
MARK = "FEATHERLOAD_STORM"


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    name: str
    state: str
    began: int

    def role(self, binary):
        """The role of the process in a run of this executable."""
        roles = {
            "featherload-co": "coordinator",
            "featherload-wk": "worker",
            "featherload-fe": "fetcher",
        }
        # The kernel keeps 15 bytes of the name of a process.
        roles[binary.name[:15]] = "consumer"
        return roles.get(self.name, "other")


def look(pid):
    """The process of this number, or None."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name may contain any character, also brackets.
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return Process(pid, int(fields[1]), name, fields[0], int(fields[19]))


def _numbers():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def tree(top):
    """`top` and its living descendants, parents first."""
    found, due = [], [top]
    while due:
        process = look(due.pop(0))
        if process and process.state not in "ZX":
            found.append(process)
            due += _children(process.pid)
    return found


def _children(pid):
    """The numbers of a process's children. A child may have a lower number than its parent."""
    tasks = Path(f"/proc/{pid}/task")
    try:
        lists = [(tasks / name / "children").read_text() for name in os.listdir(tasks)]
    except OSError:
        # The process is ending, or the kernel has no such lists.
        return [p.pid for p in map(look, _numbers()) if p and p.parent == pid]
    return [int(number) for line in lists for number in line.split()]


def marked(mark):
    """Every living process of the run `mark`, also orphans."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for number in _numbers():
        try:
            environment = Path(f"/proc/{number}/environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0") and (process := look(number)):
            found.append(process)
    return found


def send(process, number):
    """Sends a signal, and returns False when the process has ended. A new process with the same
    number gets no signal."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        now = look(process.pid)
        if now is None or now.began != process.began or now.state in "ZX":
            return False
        signal.pidfd_send_signal(handle, number)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


def peak(process):
    """The peak resident memory of a process, in bytes."""
    try:
        text = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(found[1]) << 10 if found else 0


def waits_in(pid):
    """The kernel function in which a process sleeps."""
    try:
        return Path(f"/proc/{pid}/wchan").read_text()
    except OSError:
        return ""


def evidence(mark, top):
    """One line for each thread of a run, with the call that it waits in. `top` is included also
    when it is ending and its environment is gone."""
    lines = []
    first = look(top)
    for process in {p.pid: p for p in [first, *marked(mark)] if p}.values():
        try:
            threads = sorted(int(name) for name in os.listdir(f"/proc/{process.pid}/task"))
        except OSError:
            threads = []
        for thread in threads:
            at = []
            for file in ("comm", "wchan", "syscall", "stack"):
                try:
                    text = Path(f"/proc/{process.pid}/task/{thread}/{file}").read_text()
                    at.append(" ".join(text.split()))
                except OSError:
                    at.append("?")
            lines.append(f"pid {process.pid} state {process.state} thread {thread} {' | '.join(at)}")
        lines.append(f"pid {process.pid} {process.name}: {pending(process.pid)}")
    return lines


def pending(pid):
    """The pending, blocked, ignored and caught signals of a process."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "?"
    wanted = ("SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt")
    return " ".join(line.replace("\t", "") for line in text.splitlines() if line.startswith(wanted))

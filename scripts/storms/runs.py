"""A run of the binary under a storm: its folders, its end, and the files that it leaves."""

import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field

import processes

# Seconds that a run may take after the last disturbance, beside its limits.
GRACE_S = 2.0
# Seconds in which an orphan must notice that its parent has ended, and end.
GONE_S = 2.0
# Keys of a report whose values must equal those of an undisturbed run.
BENCH = ("digest", "digests", "samples", "failed", "skipped", "substituted", "repeated")
SCENE = ("digest", "steps", "rays", "invalid")
KEYS = {"bench": BENCH, "rays": SCENE, "views": SCENE}

# Counts of results. All other counts are of disturbances, and one that stays 0 is a problem.
OF_REPORTS = (
    "samples",
    "workers' deaths in reports",
    "last words that waited for a reader",
)

_numbers = itertools.count()


@dataclass
class Outcome:
    """How one step ended. `problems` make the storm fail."""

    texts: list = field(default_factory=list)
    problems: list = field(default_factory=list)
    skipped: str | None = None
    counts: dict = field(default_factory=dict)
    # Seconds from the last disturbance to the end of the run.
    after: float = 0.0

    def count(self, name, number=1):
        self.counts[name] = self.counts.get(name, 0) + number

    def add(self, other):
        self.texts += other.texts
        self.problems += other.problems
        self.after = max(self.after, other.after)
        for name, number in other.counts.items():
            self.count(name, number)


def skip(reason):
    return Outcome(skipped=reason)


class Run:
    """A command of featherload that runs in the background."""

    def __init__(self, world, words, wrap=(), limits=(), stderr=None, shared=None):
        self.world, self.words = world, [str(word) for word in words]
        self.place = world.folder / f"run-{next(_numbers)}"
        self.mark = f"{os.getpid()}-{self.place.name}"
        for name in ("tmp", "cache", "meet"):
            (self.place / name).mkdir(parents=True)
        # The folder in which runs find each other's scene stores. Runs that share one pass it.
        self.meet = shared or self.place / "meet"
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith(("FEATHERLOAD", "XDG_"))
        }
        environment |= {
            processes.MARK: self.mark,
            "TMPDIR": str(self.place / "tmp"),
            "XDG_CACHE_HOME": str(self.place / "cache"),
            "XDG_RUNTIME_DIR": str(self.meet),
            "FEATHERLOAD_HELPER": str(world.binary),
        }
        self.out = (self.place / "stdout").open("w+")
        self.err = None if stderr else (self.place / "stderr").open("w+")

        def limit():
            for which, most in limits:
                resource.setrlimit(which, (most, most))

        self.sent = set()
        self.began = self.disturbed = time.monotonic()
        self.child = subprocess.Popen(
            [*wrap, str(world.binary), *self.words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self.out,
            stderr=stderr or self.err,
            preexec_fn=limit if limits else None,
            start_new_session=True,
        )

    # During the run.

    def runs(self):
        return self.child.poll() is None

    def tree(self):
        return processes.tree(self.child.pid)

    def of_role(self, *roles):
        return [p for p in self.tree() if p.role(self.world.binary) in roles]

    def await_role(self, role, limit=5.0):
        """The first process of a role; None when the run ended before there was one."""
        end = time.monotonic() + limit
        while time.monotonic() < end and self.runs():
            if found := self.of_role(role):
                return found[0]
        return None

    def send(self, process, number):
        if not processes.send(process, number):
            return False
        if process.pid == self.child.pid:
            self.sent.add(number)
        self.note()
        return True

    def note(self):
        """Records the time of a disturbance."""
        self.disturbed = time.monotonic()

    def sleep(self, seconds):
        """Waits until the time has passed or the run has ended. Returns whether it still runs."""
        end = time.monotonic() + seconds
        while self.runs() and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.02))
        return self.runs()

    # The end of the run.

    def finish(self, usual, extra=0.0, keep=()):
        """Waits for the end, which must come within the limits, and judges it. `usual` is the
        time of an undisturbed run. `keep` are patterns of files that the run may leave."""
        outcome = Outcome()
        # On a busy machine a run may take several times as long.
        limit = self.world.row_limit_s + GRACE_S + extra + 5 * usual
        end = self.disturbed + limit
        while self.runs() and time.monotonic() < end:
            time.sleep(0.003)
        if self.runs():
            lines = processes.evidence(self.mark, self.child.pid)
            outcome.problems.append(f"HANG: still runs after {limit:.1f} s: " + "; ".join(lines))
            self.end_all()
        outcome.after = time.monotonic() - self.disturbed
        self.judge(outcome)
        self.leftovers(outcome, keep)
        self.out.close()
        if self.err:
            self.err.close()
        if outcome.problems:
            outcome.problems.append(f"files of this run: {self.place}")
        else:
            shutil.rmtree(self.place, ignore_errors=True)
        return outcome

    def end_all(self):
        for process in processes.marked(self.mark):
            processes.send(process, signal.SIGKILL)
        self.child.wait()

    def judge(self, outcome):
        if outcome.problems:
            return
        code = self.child.returncode
        said = self.said()
        if "panicked at" in said:
            outcome.problems.append(f"PANIC: {said[said.index('panicked at') :][:300]}")
        if code == 0:
            self.compare(outcome)
        elif code < 0:
            name = signal.Signals(-code).name
            if -code in self.sent or signal.SIGKILL in self.sent:
                outcome.texts.append(f"ended by {name}")
            else:
                outcome.problems.append(f"CRASH: the caller's process ended by {name}")
        elif code - 128 in self.sent:
            outcome.texts.append(f"ended by {signal.Signals(code - 128).name}")
        elif self.err is None:
            outcome.texts.append(f"error {code}, with stderr unread")
        elif not (text := last_error(said, self.world.folder)):
            outcome.problems.append(f"SILENT: exit status {code}, and nothing on stderr")
        else:
            outcome.texts.append(f"error {code}: {text}")

    def compare(self, outcome):
        kind = self.words[0]
        if kind not in KEYS:
            outcome.texts.append("done")
            return
        try:
            report = self.report()
        except ValueError as error:
            outcome.problems.append(f"WRONG: exit status 0 and no report: {error}")
            return
        want = self.world.truth(self.words)
        wrong = [k for k in KEYS[kind] if report.get(k) != want.get(k)]
        if wrong:
            told = ", ".join(f"{k} {report.get(k)} for {want.get(k)}"[:200] for k in wrong)
            outcome.problems.append(f"WRONG: exit status 0 with {told}")
        else:
            outcome.texts.append("same digest")
            outcome.count("samples", report.get("samples", report.get("steps", 0)))
            outcome.count("workers' deaths in reports", report.get("worker_deaths", 0))

    def report(self):
        self.out.seek(0)
        return json.loads(self.out.read())

    def said(self):
        if self.err is None:
            return ""
        self.err.seek(0)
        return self.err.read()

    def leftovers(self, outcome, keep=()):
        end = time.monotonic() + GONE_S
        while (left := processes.marked(self.mark)) and time.monotonic() < end:
            time.sleep(0.01)
        if left:
            lines = "; ".join(processes.evidence(self.mark, self.child.pid))
            outcome.problems.append(f"LEFT: processes after {GONE_S} s: {lines}")
            self.end_all()
        for name in ("tmp", "cache", "meet"):
            folder = self.place / name
            files = [p.relative_to(folder) for p in folder.rglob("*") if not p.is_dir()]
            files = [str(p) for p in files if not any(re.search(k, str(p)) for k in keep)]
            if files:
                outcome.problems.append(f"LEFT: files in the folder {name}: {', '.join(files[:5])}")


def last_error(said, folder):
    """The last line of an error without numbers and paths, so that equal errors count as one."""
    lines = [line for line in said.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("featherload: warning: ")]
    own = [line for line in lines if line.startswith("featherload: ")]
    if not lines:
        return ""
    text = (own or lines)[-1].removeprefix("featherload: ").replace(str(folder), "")
    text = re.sub(r"\S*/[\w./-]+", "PATH", text)
    return re.sub(r"\d+", "N", text)[:160]

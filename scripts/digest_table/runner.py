"""Runs a case and returns its results, which the table holds.

A case is a line of steps with `&&` between them. A step is a command of featherload, which may
begin with variables (`FEATHERLOAD_CPU=scalar bench ...`), or one of the words of `Files`.
"""

import hashlib
import itertools
import json
import os
import shlex
import shutil
import subprocess

from data import FOLDER

# Counts in the report of bench, left out of the table when they are 0.
COUNTS = ("samples", "failed", "skipped", "substituted", "repeated", "batches")
# Entries of the numeric profile that are the same in every case.
VERSIONS = ("featherload", "decoder")
# Longer than any step takes: only a hang reaches it.
LIMIT_S = 300


class Runner:
    def __init__(self, binary):
        self.binary = binary
        self.states = map("states/{}.json".format, itertools.count())
        (FOLDER / "states").mkdir(exist_ok=True)
        # Variables that could change a run: those of launchers, and of featherload itself.
        foreign = ("FEATHERLOAD", "PADDLE", "FLAGS_", "XDG_")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        self.environment["XDG_CACHE_HOME"] = str(FOLDER / "kept")
        # `cache build` looks for an executable of this name.
        self.environment["FEATHERLOAD_HELPER"] = str(binary)

    def versions(self):
        """The versions of featherload and its decoders, from the numeric profile."""
        words = ["bench", "default", "--limit", "1", "--num-workers", "0", "--json"]
        done = subprocess.run([self.binary, *words], cwd=FOLDER, capture_output=True, check=True)
        return {name: json.loads(done.stdout)["profile"][name] for name in VERSIONS}

    def case(self, line):
        """The result of each step."""
        return [self._step(shlex.split(step)) for step in line.split(" && ")]

    def _step(self, words):
        try:
            if hasattr(Files, words[0]):
                return getattr(Files, words[0])(*words[1:]) or {}
            return self._command(words)
        except OSError as error:
            # An earlier command did not make the file.
            return {"error": f"{error.strerror}: {_relative(os.fsencode(error.filename))}"}
        except subprocess.TimeoutExpired:
            return {"error": f"still ran after {LIMIT_S} s"}

    def _command(self, words):
        environment = dict(self.environment)
        while "=" in words[0]:
            name, value = words.pop(0).split("=", 1)
            environment[name] = value
        kind = " ".join(words[: 2 if words[0] == "cache" else 1])
        state = None
        if kind == "bench":
            if "--save-state" not in words:
                words += ["--save-state", next(self.states)]
            state = FOLDER / words[words.index("--save-state") + 1]
            words += ["--digest", "--json"]
        elif kind in ("rays", "views"):
            words += ["--digest", "--json"]
        elif kind in ("plan", "index", "cache build", "cache verify", "cache info"):
            words += ["--json"]
        done = subprocess.run(
            # Usage errors begin with the name of the program.
            ["featherload", *words],
            executable=self.binary,
            cwd=FOLDER,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
        return self._summary(kind, done, state, kills="--kill-workers-every" in words)

    def _summary(self, kind, done, state, kills):
        result = {"exit": done.returncode}
        if done.returncode != 0:
            result["error"] = _relative(done.stderr).strip()
        if kind == "demo" or not done.stdout:
            return result
        report = json.loads(_relative(done.stdout))
        result |= SUMMARIES[kind](report)
        if kills:
            result["workers_died"] = _deaths(report) > 0
        if state is not None:
            result["state"] = _state(state)
        return result


def _deaths(report):
    return report.get("report", report)["worker_deaths"]


def _bench(report):
    result = {"digests": report["digests"]}
    result |= {name: report[name] for name in COUNTS if report[name]}
    if report["failures"]:
        kinds = [failure["kind"] for failure in report["failures"]]
        result["kinds"] = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
        result["failures"] = _hash(report["failures"])
    if report["loader"]["ring_bytes"]:
        result["ring_bytes"] = report["loader"]["ring_bytes"]
    if report["device"]:
        result["device"] = {k: report["device"][k] for k in ("upload", "planned_bytes")}
    result["profile"] = _profile(report["profile"])
    return result


def _rays(report):
    return {"digest": report["digest"], "invalid": report["invalid"]}


def _views(report):
    return {"digest": report["digest"]}


def _plan(report):
    upload = report.get("upload")
    largest = report.get("largest")
    result = {
        "memory": {k.removesuffix("_bytes"): v for k, v in report["memory"].items() if v},
        "largest": largest and largest["path"],
        "batches": report.get("batches"),
        "upload": upload and upload["upload"],
        "outline": _hash(report["outline"]),
        "drawn": _hash(report["drawn"]) if report.get("drawn") else None,
        "notes": report.get("notes"),
        "profile": _profile(report["profile"]) if "profile" in report else None,
    }
    return {name: value for name, value in result.items() if value is not None}


def _index(report):
    names = ("samples", "classes", "label_width", "shards", "shared_bytes", "hash", "skipped")
    return {name: report[name] for name in names} | {"report": _hash(report)}


def _cache_build(report):
    return {"report": _without(report, "seconds", "source_bytes", "worker_deaths")}


def _cache_verify(report):
    return {"good": report["good"], "report": _without(report, "seconds")}


def _cache_info(report):
    return {"report": _hash(_without(report, "reading"))}


SUMMARIES = {
    "bench": _bench,
    "rays": _rays,
    "views": _views,
    "plan": _plan,
    "index": _index,
    "cache build": _cache_build,
    "cache verify": _cache_verify,
    "cache info": _cache_info,
}


def _state(file):
    """The position of a state, and the hashes that must match for a resume."""
    if not file.exists():
        return None
    state = json.loads(file.read_text())
    hashes = [f"{n} {state[f'{n}_hash']}" for n in ("recipe", "index", "sampler")]
    return f"v{state['version']} {state['epoch']}:{state['samples']}, " + ", ".join(
        [*hashes, f"plan {_hash(state['plan'])}"]
    )


class Files:
    """Words that work on files between commands. All paths are relative to the folder."""

    @staticmethod
    def sha256(path):
        """The hash of a file, or of each file in a folder."""
        path = FOLDER / path
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in files}

    @staticmethod
    def tree(path):
        """One hash of all names and bytes. Links and special files count by name alone."""
        whole = hashlib.sha256()
        files = sorted(file for file in (FOLDER / path).rglob("*") if not file.is_dir())
        for file in files:
            plain = file.is_file() and not file.is_symlink()
            content = file.read_bytes() if plain else b""
            name = os.fsencode(file.relative_to(FOLDER))
            whole.update(b"%s\0%d\0" % (name, len(content)) + content)
        return {"files": len(files), "sha256": whole.hexdigest()[:16]}

    @staticmethod
    def copy(source, target):
        copied = shutil.copytree if (FOLDER / source).is_dir() else shutil.copy2
        copied(FOLDER / source, FOLDER / target)

    @staticmethod
    def damage(path, at):
        """Inverts the bits of one byte."""
        with open(FOLDER / path, "r+b") as file:
            file.seek(int(at))
            byte = file.read(1)[0]
            file.seek(int(at))
            file.write(bytes([byte ^ 0xFF]))

    @staticmethod
    def cut(path, length):
        os.truncate(FOLDER / path, int(length))

    @staticmethod
    def remove(path):
        (FOLDER / path).unlink()


def _relative(text):
    return text.decode(errors="replace").replace(f"{FOLDER}/", "").replace(str(FOLDER), ".")


def _profile(profile):
    """The numeric profile without the versions, which are in the head of the table."""
    return ", ".join(str(value) for name, value in profile.items() if name not in VERSIONS)


def _hash(value):
    text = json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()[:16]


def _without(value, *names):
    """A copy of the value without these keys, at any depth."""
    if isinstance(value, list):
        return [_without(item, *names) for item in value]
    if isinstance(value, dict):
        return {k: _without(v, *names) for k, v in value.items() if k not in names}
    return value

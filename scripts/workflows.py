"""What scripts/workflows checks beside the linters, in the current folder.

- Every action is pinned by commit, with its version as a comment, and has one version in all files.
- Actions that the linter does not know get only inputs that they have.
- Scripts that a workflow runs exist. Its oldest Rust is the `rust-version` of Cargo.toml.
- Issue forms and CITATION.cff have the keys that GitHub requires, and no unknown ones.
- CITATION.cff has the version and the license of Cargo.toml.
"""

import os
import re
import sys
import tomllib
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

PINNED = re.compile(
    r"uses: (?P<name>[\w./-]+)@(?P<commit>[0-9a-f]{40}) # (?P<version>v\d+\.\d+\.\d+)"
)
SCRIPT = re.compile(r"(?<![\w./-])(?:scripts|\.ci)/[\w-]+")
# The linter has a list of well-known actions. These two are not in it. From their action.yml.
INPUTS = {
    "pypa/gh-action-pypi-publish": {
        "attestations",
        "packages-dir",
        "password",
        "print-hash",
        "repository-url",
        "skip-existing",
        "user",
        "verbose",
        "verify-metadata",
    },
    "rust-lang/crates-io-auth-action": {"url"},
}
# For each kind of element of an issue form: keys of `attributes`, the required ones first.
ELEMENTS = {
    "markdown": (["value"], []),
    "input": (["label"], ["description", "placeholder", "value"]),
    "textarea": (["label"], ["description", "placeholder", "value", "render"]),
    "dropdown": (["label", "options"], ["description", "multiple", "default"]),
    "checkboxes": (["label", "options"], ["description"]),
}
CITATION = {"cff-version", "message", "title", "authors"}
CITATION_MORE = {
    "abstract",
    "contact",
    "date-released",
    "doi",
    "identifiers",
    "keywords",
    "license",
    "preferred-citation",
    "repository-code",
    "type",
    "url",
    "version",
}

found = []


def fault(path, text):
    found.append(f"{path}: {text}")


def keys(path, place, table, required, optional=()):
    """Reports missing and unknown keys; whether it is a table at all."""
    if not isinstance(table, dict):
        fault(path, f"{place} is not a table")
        return False
    for key in sorted(set(required) - set(table)):
        fault(path, f"{place} has no '{key}'")
    for key in sorted(set(table) - set(required) - set(optional)):
        fault(path, f"{place} has the unknown key '{key}'")
    return True


def read(path):
    """The content of a YAML file, or None. A key that is there twice is a fault, too."""
    try:
        return YAML(typ="safe", pure=True).load(path)
    except (OSError, YAMLError) as error:
        fault(path, " ".join(str(error).split()))
        return None


def workflow(path, versions, cargo):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        use = re.match(r"\s*(?:- )?uses: (?!\./)", line)
        pin = PINNED.search(line)
        if use and not pin:
            fault(path, f"line {number}: pin the action by commit, with '# vX.Y.Z' after it")
        if pin:
            known = versions.setdefault(pin["name"], (pin["commit"], pin["version"]))
            if known != (pin["commit"], pin["version"]):
                fault(path, f"line {number}: another place has {pin['name']} at {' '.join(known)}")
    content = read(path)
    if not isinstance(content, dict):
        return
    for name, job in content.get("jobs", {}).items():
        for step in job.get("steps", []):
            inputs = INPUTS.get(str(step.get("uses", "")).partition("@")[0])
            for key in sorted(set(step.get("with", {})) - inputs) if inputs is not None else ():
                fault(path, f"job {name}: {step['uses'].partition('@')[0]} has no input '{key}'")
            for script in SCRIPT.findall(step.get("run", "")):
                if not os.access(script, os.X_OK):
                    fault(path, f"job {name}: {script} is no executable file")
        if name == "oldest-rust":
            rust = str(job.get("env", {}).get("RUSTUP_TOOLCHAIN"))
            oldest = cargo["package"]["rust-version"]
            if not f"{rust}.".startswith(f"{oldest}."):
                fault(path, f"job {name}: Rust {rust}, but Cargo.toml has rust-version {oldest}")


def issue_form(path):
    form = read(path)
    more = ("title", "labels", "assignees", "projects", "type")
    if not keys(path, "the form", form, ("name", "description", "body"), more):
        return
    body = form.get("body") or []
    if all(element.get("type") == "markdown" for element in body):
        fault(path, "the form asks for nothing")
    seen = set()
    for number, element in enumerate(body, 1):
        place = f"element {number}"
        kind = element.get("type")
        if kind not in ELEMENTS:
            fault(path, f"{place} has the unknown type '{kind}'")
            continue
        if not keys(path, place, element, ("type", "attributes"), ("id", "validations")):
            continue
        attributes = element.get("attributes")
        if not keys(path, f"{place}'s attributes", attributes, *ELEMENTS[kind]):
            continue
        if "validations" in element:
            keys(path, f"{place}'s validations", element["validations"], (), ("required",))
        for key in ("id", "label"):
            value = element.get(key, attributes.get(key))
            if value is not None and (key, value) in seen:
                fault(path, f"{place} has the {key} '{value}' of another element")
            seen.add((key, value))
        if not re.fullmatch(r"[\w-]+", element.get("id", "none")):
            fault(path, f"{place} has the id '{element['id']}': use letters, digits, - and _")


def issue_config(path):
    config = read(path)
    if not keys(path, "the file", config, (), ("blank_issues_enabled", "contact_links")):
        return
    for number, link in enumerate(config.get("contact_links", ()), 1):
        keys(path, f"link {number}", link, ("name", "url", "about"))


def citation(path, cargo):
    cff = read(path)
    if not keys(path, "the file", cff, CITATION, CITATION_MORE):
        return
    package = cargo["package"]
    if cff.get("cff-version") != "1.2.0":
        fault(path, f"cff-version is '{cff.get('cff-version')}', not 1.2.0")
    if cff.get("version") != package["version"]:
        fault(path, f"version is {cff.get('version')}, but Cargo.toml has {package['version']}")
    if sorted(cff.get("license", ())) != sorted(package["license"].split(" OR ")):
        fault(path, f"license differs from Cargo.toml: {package['license']}")
    authors = cff.get("authors")
    if not isinstance(authors, list) or not authors:
        fault(path, "authors is no list of people or names")
    elif any(not {"name", "family-names", "given-names"} & set(author) for author in authors):
        fault(path, "an author has no name")


def main():
    cargo = tomllib.loads(Path("Cargo.toml").read_text())
    versions = {}
    for path in sorted(Path(".github/workflows").glob("*.yml")):
        workflow(path, versions, cargo)
    forms = sorted(Path(".github/ISSUE_TEMPLATE").glob("*.yml"))
    if not forms:
        fault(".github/ISSUE_TEMPLATE", "no issue forms")
    for path in forms:
        (issue_config if path.name == "config.yml" else issue_form)(path)
    citation(Path("CITATION.cff"), cargo)
    for line in found:
        print(line, file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()

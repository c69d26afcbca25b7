"""Lists the public API of the Python package, from its source.

    api_python.py            prints the list
    api_python.py --check    compares it with docs/api/python.txt. Exits with 1 and prints the
                             differences, if there are any
    api_python.py --write    writes that file

Public are the names in `__all__` of the modules without an underscore. A class is listed
with its public attributes, and with those of its bases in the package. Needs griffe, which the
environment of scripts/site has. Nothing is imported, so no trainer need be installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import griffe
from api_list import finish

ROOT = Path(__file__).resolve().parent.parent


def is_public(name: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def public_modules(module: griffe.Module) -> list[griffe.Module]:
    inner = [inside for name, inside in module.modules.items() if not name.startswith("_")]
    return [module, *(found for each in inner for found in public_modules(each))]


def parameter(of: griffe.Parameter) -> str:
    stars = {
        griffe.ParameterKind.var_positional: "*",
        griffe.ParameterKind.var_keyword: "**",
    }
    text = stars.get(of.kind, "") + of.name
    if of.annotation is not None:
        text += f": {of.annotation}"
    if of.default is not None and not stars.get(of.kind):
        text += f" = {of.default}"
    return text


def signature(of: griffe.Function) -> str:
    parts, marked = [], False
    for each in of.parameters:
        if each.kind is griffe.ParameterKind.var_positional:
            marked = True
        elif each.kind is griffe.ParameterKind.keyword_only and not marked:
            parts.append("*")
            marked = True
        parts.append(parameter(each))
    returned = f" -> {of.returns}" if of.returns is not None else ""
    return f"({', '.join(parts)}){returned}"


def member_line(name: str, member: griffe.Object) -> str:
    if member.is_function:
        kinds = [kind for kind in ("classmethod", "staticmethod") if kind in member.labels]
        return f"    {' '.join([*kinds, 'def'])} {name}{signature(member)}"
    if member.is_class:
        return f"    class {name}"
    if member.annotation is not None:
        return f"    {name}: {member.annotation}"
    return f"    {name}"


def own_and_inherited(of: griffe.Class) -> dict[str, griffe.Object]:
    found: dict[str, griffe.Object] = {}
    for name, member in [*of.inherited_members.items(), *of.members.items()]:
        if is_public(name):
            found[name] = member.final_target if member.is_alias else member
    return found


def item_lines(path: str, item: griffe.Object) -> list[str]:
    if item.is_class:
        bases = ", ".join(str(base) for base in item.bases)
        members = sorted(own_and_inherited(item).items())
        return [f"class {path}({bases})", *(member_line(*member) for member in members)]
    if item.is_function:
        return [f"def {path}{signature(item)}"]
    if item.is_module:
        return [f"module {path}"]
    annotation = f": {item.annotation}" if item.annotation is not None else ""
    return [f"{path}{annotation}"]


def listed() -> str:
    package = griffe.load("featherload", search_paths=[str(ROOT / "python/src")])
    lines = ["# The public API of the package featherload. scripts/api writes this file.", ""]
    for module in public_modules(package):
        for name in sorted(str(name) for name in module.exports or []):
            item = module[name]
            lines += item_lines(
                f"{module.path}.{name}", item.final_target if item.is_alias else item
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    finish(listed(), "python.txt", sys.argv[1:])


main()

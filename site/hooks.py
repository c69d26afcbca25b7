"""Hooks of the documentation site: pages from the repository as MkDocs needs them.

The Markdown in docs/ is written for GitHub, and stays plain there. While the site is built:

- README, ARCHITECTURE, CONTRIBUTING, CHANGELOG and SECURITY become pages;
- links to them and to other files of the repository are changed, and must exist;
- fences lose the words of our tests after the language: ``sh no-test (needs a GPU)``;
- fenced blocks after ``<!-- tabs -->`` become tabs, one for each language;
- notebooks of docs/quickstart become pages, with the outputs that scripts/notebooks wrote to the
  folder FEATHERLOAD_NOTEBOOKS;
- each public module of the Python package gets a page, with the names of its ``__all__``;
- the gallery comes from the folder FEATHERLOAD_GALLERY, which gallery.py writes.

A warning fails the build.
"""

from __future__ import annotations

import logging
import os
import posixpath
import re
import sys
from pathlib import Path

import griffe
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
import notebooks
from github_markdown import count_elements, count_html, for_python_markdown, without_code

log = logging.getLogger("mkdocs.hooks.site")

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "src"
# Files of the repository that are pages of the site.
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
# A user's questions first: pages for maintainers come last in search results. Notebooks name many
# things in passing, which other pages explain.
BOOSTS = {
    **{"design/": 0.3, "add/": 0.3, "architecture": 0.3, "contributing": 0.3, "changelog": 0.1},
    "quickstart/": 0.5,
}
LANGUAGES = {"python": "Python", "rust": "Rust", "sh": "Command line"}
LINK = re.compile(r"(!?)\[((?:[^\[\]`]|`[^`]*`)*)\]\(([^()\s]+)\)")
TABS = re.compile(r"^<!-- tabs -->\n\n?((?:```\w+\n(?:(?!```).*\n)*```\n\n?)+)", re.MULTILINE)
SHORT = re.compile(r"<code>([^<\n]{1,24})</code>")
FENCE = re.compile(r"```(\w+)\n((?:(?!```).*\n)*)```\n")


def source_path(src_uri: str) -> str | None:
    """Where a page comes from in the repository. None for a generated one."""
    for path, page in PAGES.items():
        if page == src_uri:
            return path
    for path in (f"docs/{src_uri}", f"docs/{src_uri.removesuffix('.md')}.ipynb"):
        if (ROOT / path).is_file():
            return path
    return None


def modules() -> dict[str, griffe.Module]:
    """The package and its public modules, by their names."""
    package = griffe.load("featherload", search_paths=[PACKAGE], allow_inspection=False)
    public = [m for name, m in package.modules.items() if not name.startswith("_")]
    found = {m.path: m for m in [package, *sorted(public, key=lambda m: m.name)]}
    for name, module in found.items():
        if module.exports is None:
            log.warning(f"{name} has no __all__, so its page would be empty")
    return found


def api_pages() -> dict[str, str]:
    """The pages of the Python API, by their place."""
    index = ["# Python API", "", "| module | content |", "|---|---|"]
    pages = {}
    found = modules()
    documented = {
        module[str(export)].canonical_path
        for module in found.values()
        for export in module.exports or []
    }
    for name, module in found.items():
        members = [
            str(export)
            for export in module.exports or []
            if not str(export).startswith("__") and not module[str(export)].is_module
        ]
        text = f"# {name}\n\n::: {name}\n    options:\n      members: false\n\n"
        for member in members:
            warn_undocumented(module[member], documented)
            inherited = "".join(
                f"        - {base}\n" for base in hidden_members(module[member], documented)
            )
            text += f"::: {name}.{member}\n    options:\n      show_root_heading: true\n"
            text += "      show_root_toc_entry: true\n"
            text += f"      inherited_members:\n{inherited}\n" if inherited else "\n"
        first = module.docstring.value.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        index.append(f"| [`{name}`]({name}.md) | {first} |")
        pages[f"api/{name}.md"] = text
    return {"api/index.md": "\n".join(index) + "\n", **pages}


def hidden_members(thing: griffe.Object | griffe.Alias, documented: set[str]) -> list[str]:
    """Public members from bases that have no page, such as `_scene_run.SceneRun`."""
    if not thing.is_class:
        return []
    return [
        name
        for name, member in thing.inherited_members.items()
        if not name.startswith("_") and member.final_target.parent.path not in documented
    ]


def warn_undocumented(member: griffe.Object | griffe.Alias, documented: set[str]) -> None:
    """Warns of public classes, functions, methods and properties without a docstring."""
    if not (member.is_class or member.is_function or "property" in member.labels):
        return
    if member.docstring is None:
        log.warning(f"{member.path} has no docstring")
    if member.is_class:
        inherited = {
            name: member.inherited_members[name] for name in hidden_members(member, documented)
        }
        for name, inner in {**member.members, **inherited}.items():
            if not name.startswith("_"):
                warn_undocumented(inner, documented)


def on_config(config):
    """Puts the pages of the Python API into the navigation."""
    config.extra["api_pages"] = pages = api_pages()

    def expand(entry):
        if isinstance(entry, list):
            return [expand(inner) for inner in entry]
        if isinstance(entry, dict):
            return {title: expand(inner) for title, inner in entry.items()}
        return list(pages) if entry == "api" else entry

    config.nav = expand(config.nav)
    return config


def on_files(files, config):
    """Adds the pages and pictures that are not in docs/."""
    for path, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text()))
    for page, text in config.extra.pop("api_pages").items():
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "rust-api.md", content=rust_page()))
    add_notebooks(files, config)
    gallery = Path(os.environ["FEATHERLOAD_GALLERY"])
    for path in sorted(gallery.iterdir()):
        place = "gallery.md" if path.suffix == ".md" else f"gallery/{path.name}"
        files.append(File.generated(config, place, abs_src_path=str(path)))
    # Pictures of runs that pages of docs/ show.
    for page in files.documentation_pages():
        source = source_path(page.src_uri)
        for image, _, target in LINK.findall(page.content_string) if source else ():
            path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
            if image and (ROOT / path).is_file():
                picture = File.generated(config, path, abs_src_path=str(ROOT / path))
                files.append(picture)
    for page in config.extra["search_terms"]:
        if files.get_file_from_path(page) is None:
            log.warning(f"search_terms names {page}, which does not exist")
    return files


def add_notebooks(files, config) -> None:
    """Adds a page for each notebook, and the pictures of its outputs."""
    executed = Path(os.environ["FEATHERLOAD_NOTEBOOKS"])
    for path in sorted((ROOT / "docs" / notebooks.FOLDER).glob("*.ipynb")):
        page = notebooks.page_of(path, executed / path.name)
        for fault in page.faults:
            log.warning(f"{path.name}: {fault}")
        place = f"{notebooks.FOLDER}/{path.stem}.md"
        files.append(File.generated(config, place, content=page.markdown))
        for name, data in page.pictures.items():
            files.append(File.generated(config, name, content=data))


def rust_page() -> str:
    intro = (
        "# Rust API\n\n[Rust](rust.md) has whole programs. rustdoc describes every public type: "
        "`Loader`, `Recipe`, `Source`, `Rays`, `Views`, caches, and the errors.\n\n"
    )
    if os.environ.get("FEATHERLOAD_RUSTDOC"):
        # HTML, since MkDocs does not know the files that scripts/site copies after the build.
        return intro + '<a href="rust/featherload/index.html">Open the pages of rustdoc</a>\n'
    return intro + (
        "This copy of the site has no pages of rustdoc. Make them in a clone:\n\n"
        "```sh\ncargo doc --no-deps --lib --open\n```\n"
    )


def on_page_markdown(markdown, page, config, files):
    source = source_path(page.file.src_uri)
    for prefix, boost in BOOSTS.items():
        if page.file.src_uri.startswith(prefix):
            page.meta.setdefault("search", {})["boost"] = boost
    # The index of the search has tags. No plugin shows them on the page.
    if terms := config.extra["search_terms"].get(page.file.src_uri):
        page.meta["tags"] = terms
    if source is None:
        return markdown
    markdown = re.sub(r"^( *```\w+)[ ,].*$", r"\1", markdown, flags=re.MULTILINE)
    markdown = without_code(
        markdown,
        lambda text: LINK.sub(lambda link: changed_link(link, source, page, config), text),
    )
    page.meta["elements"] = count_elements(markdown)
    return with_tabs(for_python_markdown(markdown), source)


def changed_link(link: re.Match[str], source: str, page, config) -> str:
    """A link of the repository as a link of the site."""
    image, text, target = link.groups()
    if "://" in target or target.startswith(("#", "mailto:")):
        return link[0]
    file, _, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), file))
    anchor = f"#{anchor}" if anchor else ""
    if not (ROOT / path).exists():
        log.warning(f"{source}: the link '{target}' leads to no file of the repository")
        return link[0]
    if path == source:
        # The notebook of a page, to download.
        return link[0]
    place = PAGES.get(path)
    if place is None and path.startswith("docs/") and path.endswith((".md", ".ipynb")):
        place = path.removeprefix("docs/").replace(".ipynb", ".md")
    if place is None and image:
        place = path
    if place is not None:
        folder = posixpath.dirname(page.file.src_uri) or "."
        return f"{image}[{text}]({posixpath.relpath(place, folder)}{anchor})"
    if repository := config.extra["repository"]:
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"[{text}]({repository.rstrip('/')}/{kind}/main/{path}{anchor})"
    # "run" says nothing without its link.
    return f"`{path}`" if text in ("run", f"`{path}`") else f"{text} (`{path}`)"


def with_tabs(markdown: str, source: str) -> str:
    """Replaces each marker for tabs and the blocks after it."""

    def tabs(found: re.Match[str]) -> str:
        blocks = FENCE.findall(found[1])
        languages = [language for language, _ in blocks]
        if len(blocks) < 2 or len(set(languages)) < len(blocks) or set(languages) - set(LANGUAGES):
            log.warning(f"{source}: tabs need two or more of {', '.join(LANGUAGES)}: {languages}")
        out = ""
        for language, code in blocks:
            lines = "".join(f"    {line}\n" if line else "\n" for line in code.splitlines())
            out += f'=== "{LANGUAGES.get(language, language)}"\n\n'
            out += f"    ```{language}\n{lines}    ```\n\n"
        return out

    markdown = TABS.sub(tabs, markdown)
    if re.search("^<!-- tabs -->$", markdown, re.MULTILINE):
        log.warning(f"{source}: no blocks of code directly after <!-- tabs -->")
    return markdown


def on_page_content(html, page, config, files):
    """Compares with what GitHub shows: Python-Markdown reads some lists and tables differently."""
    expected = page.meta.pop("elements", None)
    if expected is not None and (found := count_html(html)) != expected:
        names = sorted(name for name in expected | found if expected[name] != found[name])
        for name in names:
            log.warning(
                f"{page.file.src_uri}: {found[name]} elements <{name}> instead of {expected[name]}"
            )
    # site.css keeps these on one line.
    return SHORT.sub(r'<code class="short">\1</code>', html)

"""Opens every page of a built site in headless Chromium: look.py FOLDER [PICTURES].

Each page is opened at 1,280 pixels in light colours, and at 390 in dark ones. With PICTURES both
have both colours, and PICTURES gets a screenshot of each. Reported are pages wider than the window,
errors of scripts, failed requests and requests to other hosts. Then the questions below are typed
into the search, over http and from the files. The page that answers must be among the first three
results.

It needs the package `playwright`, and Chromium: its own, or the executable in the variable
FEATHERLOAD_CHROMIUM.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import (
    ConsoleMessage,
    Error,
    Page,
    Request,
    Response,
    sync_playwright,
)

WIDTHS = {1280: 800, 390: 844}
# What a new user types, and the page that answers.
QUESTIONS = {
    "how much memory": "memory.html",
    "COCO": "targets.html",
    "resume": "python/resume.html",
    "decode on my GPU": "gpu.html",
    "why slow": "measuring.html",
    "install": "install.html",
    "ImageFolder": "python/torch-dataloader.html",
    "parquet": "parquet.html",
    "s3": "stores.html",
    "nerfstudio": "python/nerfstudio-gsplat.html",
    "segmentation": "segmentation.html",
    "batch_size": "api/featherload.html",
    "Weighted": "python/samplers.html",
    "notebook": "quickstart/index.html",
}
# Elements that reach beyond the window, unless they scroll within another one.
WIDE = """() => {
  const wide = document.scrollingElement.scrollWidth - innerWidth;
  if (wide <= 0) return null;
  const last = [...document.querySelectorAll("article *")].filter(
    (e) => e.getBoundingClientRect().right > innerWidth + 1);
  return `${wide} px too wide: ${last.slice(0, 3).map((e) => e.outerHTML.slice(0, 80))}`;
}"""


class Server(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def results(page: Page, question: str) -> list[str]:
    """The addresses that the search finds, the first ones first."""
    page.keyboard.press("/")
    field = page.locator("input.md-search__input")
    # The search listens to keys.
    field.press_sequentially(question)
    page.locator(".md-search-result__item").first.wait_for(timeout=10_000)
    # The list is filled in steps.
    page.wait_for_timeout(300)
    links = page.locator("a.md-search-result__link").evaluate_all("list => list.map(a => a.href)")
    return links


def schemes(width: int, are_all: bool) -> list[str]:
    """The colours in which pages of a width are opened."""
    return ["light", "dark"] if are_all else ["light" if width > 1000 else "dark"]


def watch(page: Page, home: str) -> list[str]:
    """A list that gets what goes wrong on a page from now on."""
    problems: list[str] = []

    def request(made: Request) -> None:
        if not made.url.startswith((home, "data:", "file:")):
            problems.append(f"a request to another host: {made.url}")

    def failed(made: Request) -> None:
        # A page that is left aborts its requests.
        if made.failure != "net::ERR_ABORTED":
            problems.append(f"{made.url}: {made.failure}")

    def response(got: Response) -> None:
        if got.status >= 400:
            problems.append(f"status {got.status}: {got.url}")

    def console(message: ConsoleMessage) -> None:
        if message.type == "error":
            problems.append(message.text)

    page.on("pageerror", lambda error: problems.append(f"error of a script: {error}"))
    page.on("console", console)
    page.on("request", request)
    page.on("response", response)
    page.on("requestfailed", failed)
    return problems


def main() -> None:
    root = Path(sys.argv[1]).resolve()
    pictures = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=root))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = f"http://127.0.0.1:{server.server_port}/"
    places = [path.relative_to(root).as_posix() for path in sorted(root.rglob("*.html"))]
    places = [place for place in places if not place.startswith("rust/")]
    faults: list[str] = []
    with sync_playwright() as play:
        chromium = os.environ.get("FEATHERLOAD_CHROMIUM")
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for width, height in WIDTHS.items():
            for scheme in schemes(width, pictures is not None):
                window = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme=scheme
                )
                page = window.new_page()
                # The search reads its index on each page. It is tried below.
                page.add_init_script(
                    "window.Worker = class extends EventTarget { postMessage() {} }"
                )
                problems = watch(page, home)
                for at in places:
                    page.goto(home + at)
                    if wide := page.evaluate(WIDE):
                        problems.append(wide)
                    faults += [f"{at}, {width} px, {scheme}: {text}" for text in problems]
                    problems.clear()
                    if pictures is not None:
                        name = at.removesuffix(".html").replace("/", "-")
                        page.screenshot(path=pictures / f"{name}-{width}-{scheme}.png")
                window.close()
        for start in (home + "index.html", (root / "index.html").as_uri()):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            problems = watch(page, home)
            base = start.removesuffix("index.html")
            for question, answer in QUESTIONS.items():
                page.goto(start)
                began = time.monotonic()
                try:
                    links = results(page, question)
                except Error as error:
                    faults.append(f"{start}: search '{question}': {error}")
                    break
                found = [link.removeprefix(base).partition("?")[0] for link in links]
                pages = list(dict.fromkeys(link.partition("#")[0] for link in found))
                took = time.monotonic() - began
                print(f"site: '{question}' finds {', '.join(pages[:3])} in {took:.1f} s")
                if answer not in pages[:3]:
                    faults.append(
                        f"{start}: search '{question}': {answer} is not among {pages[:3]}"
                    )
            faults += [f"{start}: {text}" for text in problems]
        browser.close()
    for fault in faults:
        print(f"site: {fault}", file=sys.stderr)
    if faults:
        sys.exit(1)
    print(f"site: {len(places)} pages fit in {' and '.join(map(str, WIDTHS))} pixels")


if __name__ == "__main__":
    main()

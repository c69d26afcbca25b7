"""A local web server that serves a folder, with one fault."""

import contextlib
import email.utils
import http.server
import re
import threading
import time
from pathlib import Path

MIB = 1 << 20
# Another host. Its name is never resolved, since no redirect may lead to it.
ELSEWHERE = "http://elsewhere.invalid/"
# The address at which clouds serve the credentials of a machine.
LINK_LOCAL = "http://169.254.169.254/latest/meta-data/"


class Server(http.server.ThreadingHTTPServer):
    """Serves `folder` with the fault `wrong`: for files whose names end in `of`, in the first
    `times` requests of them. A negative number means always."""

    daemon_threads = True

    def __init__(self, folder, wrong, of, times):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.wrong, self.of, self.left = Path(folder), wrong, of, times
        self.lock, self.done = threading.Lock(), 0

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"

    def takes_its_turn(self, name):
        """Whether this request gets the wrong answer."""
        with self.lock:
            if not name.endswith(self.of) or self.left == 0:
                return False
            self.left -= 1
            self.done += 1
            return True

    def handle_error(self, request, client_address):
        """Ignores errors of a connection: clients may disconnect at any time."""


@contextlib.contextmanager
def serving(folder, wrong, of, times):
    server = Server(folder, wrong, of, times)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Unbuffered: each write is sent at once.
    wbufsize = 0

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, body):
        name = self.path.partition("?")[0].lstrip("/")
        path = self.server.folder / name
        if not path.is_file():
            return self.plain(404, b"no such file")
        wrong = self.server.wrong if self.server.takes_its_turn(name) else None
        if wrong in ("refuses", "is busy"):
            return self.plain(403 if wrong == "refuses" else 503, b"\x1b[31mno\x1b[0m")
        if wrong == "refuses with a large body":
            return self.large(403, 64 * MIB)
        if wrong == "sends without end":
            return self.large(200, 1 << 50)
        if wrong in ("leads to another host", "leads to a link-local address", "leads in a circle"):
            places = {"another": ELSEWHERE + name, "link": LINK_LOCAL, "circle": self.path}
            place = next(to for word, to in places.items() if word in wrong)
            return self.plain(302, b"", Location=place)
        return self.file(path, wrong, body)

    def file(self, path, wrong, body):
        data = path.read_bytes()
        start, end, status = 0, len(data), 200
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted and self.server.wrong != "has no ranges":
            start = int(wanted[1])
            end = min(int(wanted[2]) + 1 if wanted[2] else end, end)
            if start >= end:
                return self.plain(416, b"")
            if wrong == "sends another range":
                start = max(0, start - 100)
            status = 206
        part = data[start:end]
        if wrong == "changes a byte" and part:
            at = len(part) // 2
            part = part[:at] + bytes([part[at] ^ 1]) + part[at + 1 :]
        self.send_response(status)
        self.send_header("Last-Modified", email.utils.formatdate(path.stat().st_mtime, usegmt=True))
        self.send_header("ETag", f'"{path.stat().st_mtime_ns:x}-{len(data):x}"')
        if status == 206:
            size = "*" if self.server.wrong == "keeps the size to itself" else len(data)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        if not body:
            return
        if wrong in ("breaks off", "has no ranges"):
            self.wfile.write(part[: len(part) // 2])
            self.close_connection = True
        elif wrong == "sends slowly":
            for at in range(0, len(part), 1 + len(part) // 8):
                self.wfile.write(part[at : at + 1 + len(part) // 8])
                time.sleep(0.03)
        else:
            self.wfile.write(part)

    def plain(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def large(self, status, size):
        self.send_response(status)
        self.send_header("Content-Length", str(size))
        self.send_header("ETag", '"large"')
        self.end_headers()
        if self.command == "HEAD":
            return
        with contextlib.suppress(OSError):
            for _ in range(size // MIB):
                self.wfile.write(b"e" * MIB)

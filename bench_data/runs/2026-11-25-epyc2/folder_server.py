"""A folder as an object store: GET with ranges, HEAD and listings, as S3 answers them.

    python folder_server.py FOLDER [PORT]

Prints its port. Bytes go from the page cache to the socket within the kernel. It writes nothing,
and asks for no credentials. FOLDER holds a folder for each bucket.
"""

from __future__ import annotations

import os
import sys
import urllib.parse
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.sax.saxutils import escape


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # The head of an answer goes at once.
    wbufsize = 1 << 16
    root: Path

    def do_GET(self) -> None:
        self.answer(body=True)

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def answer(self, *, body: bool) -> None:
        url = urllib.parse.urlsplit(self.path)
        key = urllib.parse.unquote(url.path).strip("/")
        if "/" not in key:
            self.list(key, dict(urllib.parse.parse_qsl(url.query)))
            return
        try:
            file = (self.root / key).open("rb")
        except (FileNotFoundError, IsADirectoryError):
            self.error(404, "NoSuchKey", "The specified key does not exist.", body)
            return
        with file:
            found = os.fstat(file.fileno())
            tag = f'"{found.st_size:x}-{found.st_mtime_ns:x}"'
            wanted = self.headers.get("If-Match")
            if wanted not in (None, "*", tag):
                self.error(412, "PreconditionFailed", "At least one did not hold.", body)
                return
            first, behind, status = 0, found.st_size, 200
            if span := self.headers.get("Range"):
                status = 206
                begin, _, last = span.removeprefix("bytes=").partition("-")
                if begin:
                    first = int(begin)
                    behind = min(behind, int(last) + 1) if last else behind
                else:
                    first = max(0, behind - int(last))
                if first >= found.st_size:
                    self.error(416, "InvalidRange", "The range is not satisfiable.", body)
                    return
            self.send_response(status)
            self.send_header("Content-Length", str(behind - first))
            self.send_header("Content-Type", "binary/octet-stream")
            self.send_header("ETag", tag)
            self.send_header("Last-Modified", formatdate(found.st_mtime, usegmt=True))
            self.send_header("Accept-Ranges", "bytes")
            if status == 206:
                self.send_header("Content-Range", f"bytes {first}-{behind - 1}/{found.st_size}")
            self.end_headers()
            self.wfile.flush()
            while body and first < behind:
                sent = os.sendfile(
                    self.connection.fileno(), file.fileno(), first, min(behind - first, 1 << 24)
                )
                if sent == 0:
                    self.close_connection = True
                    return
                first += sent

    def list(self, bucket: str, asked: dict[str, str]) -> None:
        top = self.root / bucket
        prefix = asked.get("prefix", "")
        rows = []
        for path in sorted(top.rglob("*")):
            key = str(path.relative_to(top))
            if path.is_file() and key.startswith(prefix):
                found = path.stat()
                rows.append(
                    f"<Contents><Key>{escape(key)}</Key><Size>{found.st_size}</Size>"
                    f"<LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                    f'<ETag>"{found.st_size:x}-{found.st_mtime_ns:x}"</ETag>'
                    f"<StorageClass>STANDARD</StorageClass></Contents>"
                )
        text = (
            f"<ListBucketResult><Name>{escape(bucket)}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<KeyCount>{len(rows)}</KeyCount><MaxKeys>1000000</MaxKeys>"
            f"<IsTruncated>false</IsTruncated>{''.join(rows)}</ListBucketResult>"
        )
        self.xml(200, text, body=True)

    def error(self, status: int, code: str, text: str, body: bool) -> None:
        self.xml(status, f"<Error><Code>{code}</Code><Message>{text}</Message></Error>", body)

    def xml(self, status: int, text: str, body: bool) -> None:
        data = f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Clients that go away are no news."""


def main() -> None:
    Handler.root = Path(sys.argv[1]).resolve()
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    server = Server(("127.0.0.1", port), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

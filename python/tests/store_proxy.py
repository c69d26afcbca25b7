"""A proxy of the tests: it stands between a client and an object store, and can be a bad network.

It needs the standard library alone, and speaks HTTP/1.1 with connections that stay open. Headers
and bodies pass as they are. Only ``Connection`` belongs to each side. A body passes in pieces, so
memory does not grow with objects.

::

    with StoreProxy(("127.0.0.1", 9000)) as proxy:
        proxy.limit_rate(10_000_000)
        proxy.cut("*shard-000003.tar", after=100_000, times=2)
        ...  # a client that talks to proxy.url
        assert proxy.bytes_sent("*shard-000003.tar") < 1_000_000

Keys are ``bucket/prefix/name``. Where a pattern is asked for, ``fnmatch`` matches it.

A thread serves each connection, so rules may be changed at any time. A rule of the request is
applied in this order: ``before``, ``delay``, ``hang``, ``refuse``, ``cut``.
"""

from __future__ import annotations

import contextlib
import fcntl
import fnmatch
import os
import select
import socket
import struct
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

# Of a body, at a time. A pipe of this size may hold it.
PIECE = 1 << 20
# The same where the rate is limited, at most.
PACED_PIECE = 64 << 10
# Of a request's or an answer's head, at most.
MOST_HEAD = 1 << 16
# How long a server may take to say 100 Continue.
CONTINUE_LIMIT = 1.0
# No side may be silent for longer. A hang has no limit.
SILENCE_LIMIT = 120.0


@dataclass
class Sent:
    """A request, and what was sent for it. ``ended`` is None while it is under way."""

    method: str
    key: str
    query: str
    range: str | None
    began: float
    status: int = 0
    # The first byte of the object that the answer holds, and the one behind its last.
    first: int = 0
    behind: int = 0
    # Bytes of the body that went to the client.
    bytes: int = 0
    ended: float | None = None

    @property
    def is_get(self) -> bool:
        """Of an object; a listing is none."""
        return self.method == "GET" and "/" in self.key

    def meets(self, other: Sent) -> bool:
        """Whether both were under way at one time."""
        ends = [one.ended if one.ended is not None else float("inf") for one in (self, other)]
        return max(self.began, other.began) < min(ends)


@dataclass
class _Rule:
    kind: str
    pattern: str
    left: int | None
    # Requests of the key that are let through first.
    skip: int = 0
    after: int = 0
    seconds: float = 0.0
    status: int = 0
    code: str = ""
    text: str = ""
    reset: bool = False
    call: Callable[[], object] | None = None
    seen: Counter[str] = field(default_factory=Counter)


class _Pace:
    """Bytes a second over all connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rate: float | None = None
        self._free = 0.0

    def set(self, rate: float | None) -> None:
        with self._lock:
            self._rate, self._free = rate, time.monotonic()

    def piece(self) -> int:
        rate = self._rate
        return PIECE if rate is None else max(1024, min(PACED_PIECE, int(rate / 50)))

    def wait(self, count: int) -> None:
        with self._lock:
            if self._rate is None:
                return
            # A late thread may catch up a little, so that the mean holds.
            self._free = max(self._free, time.monotonic() - 0.05) + count / self._rate
            late = self._free - time.monotonic()
        if late > 0:
            time.sleep(late)


class _Gone(Exception):
    """A side closed, or was silent for too long."""


class _Stream:
    """A socket, and what was read ahead of it."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Blocking for splice, with limits of the system.
        sock.setblocking(True)
        limit = struct.pack("ll", int(SILENCE_LIMIT), 0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self.sock = sock
        self.ahead = bytearray()
        self.open = True

    def head(self) -> bytes | None:
        """Up to the empty line; None where the other side closed before the first byte."""
        while (end := self.ahead.find(b"\r\n\r\n")) < 0:
            if len(self.ahead) > MOST_HEAD:
                raise _Gone("a head without end")
            if not self._more():
                if self.ahead:
                    raise _Gone("closed within a head")
                return None
        head = bytes(self.ahead[: end + 4])
        del self.ahead[: end + 4]
        return head

    def line(self) -> bytes:
        while (end := self.ahead.find(b"\r\n")) < 0:
            if len(self.ahead) > MOST_HEAD or not self._more():
                raise _Gone("closed within a line")
        line = bytes(self.ahead[: end + 2])
        del self.ahead[: end + 2]
        return line

    def _more(self) -> bool:
        try:
            got = self.sock.recv(MOST_HEAD)
        except OSError as e:
            raise _Gone(str(e)) from e
        self.ahead += got
        return bool(got)

    def send(self, data: bytes | bytearray | memoryview) -> None:
        try:
            self.sock.sendall(data)
        except OSError as e:
            raise _Gone(str(e)) from e

    def has_something(self, seconds: float) -> bool:
        """Whether a byte, or the end, is there."""
        return bool(self.ahead) or bool(select.select([self.sock], [], [], seconds)[0])

    def has_ended(self) -> bool:
        """Whether the other side closed, without taking a byte."""
        try:
            return self.sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self, *, reset: bool = False) -> None:
        if not self.open:
            return
        self.open = False
        with contextlib.suppress(OSError):
            if reset:
                # No time to linger: what was not taken is lost.
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


class _Pipe:
    """Moves bytes from a socket to another within the kernel."""

    def __init__(self) -> None:
        self.end, self.begin = os.pipe()
        with contextlib.suppress(OSError):
            fcntl.fcntl(self.begin, fcntl.F_SETPIPE_SZ, PIECE)

    def move(
        self, source: socket.socket, sink: socket.socket, most: int, counted: Sent | None
    ) -> int:
        """Up to ``most`` bytes; 0: the source ended."""
        try:
            got = left = os.splice(source.fileno(), self.begin, most)
            _count(counted, got)
            while left > 0:
                left -= os.splice(self.end, sink.fileno(), left)
        except OSError as e:
            raise _Gone(str(e)) from e
        return got

    def close(self) -> None:
        os.close(self.end)
        os.close(self.begin)


class _Head:
    """First line and headers, as they came."""

    def __init__(self, raw: bytes) -> None:
        lines = raw[:-4].split(b"\r\n")
        self.first = lines[0]
        self.lines = lines[1:]
        self.fields: dict[bytes, bytes] = {}
        for line in self.lines:
            name, _, value = line.partition(b":")
            self.fields.setdefault(name.strip().lower(), value.strip())

    def get(self, name: bytes) -> str:
        return self.fields.get(name, b"").decode("latin-1")

    @property
    def is_chunked(self) -> bool:
        return "chunked" in self.get(b"transfer-encoding").lower()

    @property
    def length(self) -> int | None:
        value = self.get(b"content-length")
        return int(value) if value.isdigit() else None

    @property
    def closes(self) -> bool:
        said = self.get(b"connection").lower()
        return "close" in said or (b"HTTP/1.0" in self.first and "keep-alive" not in said)

    def raw(self, *, close: bool) -> bytes:
        """With this side's word on whether the connection stays."""
        kept = [line for line in self.lines if not line.lower().startswith(b"connection:")]
        own = [b"Connection: close"] if close else []
        return b"\r\n".join([self.first, *kept, *own]) + b"\r\n\r\n"


class StoreProxy:
    """Stands in front of the server at ``server``, on a free port of the loopback."""

    def __init__(self, server: tuple[str, int], port: int = 0) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._rules: list[_Rule] = []
        self._pace = _Pace()
        self._sent: list[Sent] = []
        self._streams: set[_Stream] = set()
        self._ended = threading.Event()
        self._hanging = threading.Event()
        self.failures: list[BaseException] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._accept, daemon=True, name="store-proxy")
        self._thread.start()

    def __enter__(self) -> StoreProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections. What broke within the proxy is raised."""
        self._ended.set()
        self._hanging.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            stream.close()
        if self.failures:
            raise self.failures[0]

    # What it does to requests.

    def limit_rate(self, bytes_per_s: float | None) -> None:
        """Of bodies to clients, over all connections. None: no limit."""
        self._pace.set(bytes_per_s)

    def delay(self, seconds: float, pattern: str = "*", times: int | None = None) -> None:
        """Waits before a request goes on."""
        self._add(_Rule("delay", pattern, times, seconds=seconds))

    def cut(
        self, pattern: str, after: int, times: int = 1, *, skip: int = 0, reset: bool = False
    ) -> None:
        """Closes the connection behind ``after`` bytes of the body of a GET.

        ``skip``: so many GETs of each key pass first. ``reset``: as one that lost power. A body
        of at most ``after`` bytes passes, and counts.
        """
        self._add(_Rule("cut", pattern, times, skip=skip, after=after, reset=reset))

    def refuse(
        self,
        pattern: str = "*",
        times: int | None = None,
        *,
        status: int = 503,
        code: str = "SlowDown",
        text: str = "Please reduce your request rate.",
        skip: int = 0,
    ) -> None:
        """Answers with an error as S3 does. The server does not see the request."""
        rule = _Rule("refuse", pattern, times, skip=skip, status=status, code=code, text=text)
        self._add(rule)

    def before(self, pattern: str, get: int, call: Callable[[], object]) -> None:
        """Calls ``call`` once, before the ``get``-th GET of a key from now on, the first is 1.

        With a ``cut`` in front the object can change between two ranges.
        """
        self._add(_Rule("before", pattern, 1, skip=get - 1, call=call))

    def hang(self, pattern: str = "*", times: int | None = None, *, skip: int = 0) -> None:
        """Takes a request and never answers, until ``calm`` or the client ends it."""
        self._hanging.clear()
        self._add(_Rule("hang", pattern, times, skip=skip))

    def calm(self) -> None:
        """Removes all rules, and the limit of the rate. Those that hang go on."""
        with self._lock:
            self._rules.clear()
        self._pace.set(None)
        self._hanging.set()

    def _add(self, rule: _Rule) -> None:
        with self._lock:
            self._rules.append(rule)

    def _rule(self, kind: str, request: Sent) -> _Rule | None:
        """The first one that is for it; it counts."""
        only_gets = kind in ("cut", "before")
        if only_gets and not request.is_get:
            return None
        with self._lock:
            for rule in self._rules:
                if rule.kind != kind or not fnmatch.fnmatchcase(request.key, rule.pattern):
                    continue
                rule.seen[request.key] += 1
                if rule.left == 0 or rule.seen[request.key] <= rule.skip:
                    continue
                if rule.left is not None:
                    rule.left -= 1
                return rule
        return None

    # What it saw.

    def forget(self) -> None:
        """Begins its records again; requests that are under way are left out."""
        with self._lock:
            self._sent.clear()

    @property
    def requests(self) -> list[Sent]:
        """All requests, in the order in which they came."""
        with self._lock:
            return list(self._sent)

    def gets(self, pattern: str = "*") -> list[Sent]:
        """GETs of objects."""
        all = self.requests
        return [one for one in all if one.is_get and fnmatch.fnmatchcase(one.key, pattern)]

    def keys(self, pattern: str = "*") -> set[str]:
        """Objects of which there was a GET."""
        return {one.key for one in self.gets(pattern)}

    def bytes_sent(self, pattern: str = "*") -> int:
        """Bytes of objects. What lies in buffers of a client that was killed counts."""
        return sum(one.bytes for one in self.gets(pattern))

    def bytes_by_key(self, pattern: str = "*") -> Counter[str]:
        counts: Counter[str] = Counter()
        for one in self.gets(pattern):
            counts[one.key] += one.bytes
        return counts

    def most_gets_at_once(self, pattern: str = "*") -> int:
        """Most GETs of one key that were under way at the same time."""
        return max((_most(of_key, _spans_of_time) for of_key in self._of_keys(pattern)), default=0)

    def asked_twice_at_once(self, pattern: str = "*") -> set[str]:
        """Keys of which two GETs under way at the same time asked for one byte."""
        found = set()
        for of_key in self._of_keys(pattern):
            of_key.sort(key=lambda one: one.began)
            for at, one in enumerate(of_key):
                if any(
                    one.meets(other) and max(one.first, other.first) < min(one.behind, other.behind)
                    for other in of_key[at + 1 :]
                ):
                    found.add(one.key)
        return found

    def times_fetched(self, pattern: str = "*") -> Counter[str]:
        """How often that byte of a key was sent that was sent most often."""
        counts: Counter[str] = Counter()
        for of_key in self._of_keys(pattern):
            counts[of_key[0].key] = _most(of_key, _spans_of_bytes)
        return counts

    def _of_keys(self, pattern: str) -> list[list[Sent]]:
        of_keys: dict[str, list[Sent]] = {}
        for one in self.gets(pattern):
            of_keys.setdefault(one.key, []).append(one)
        return list(of_keys.values())

    # How it works.

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        client = self._opened(sock)
        server: _Stream | None = None
        pipe = _Pipe()
        try:
            while (raw := client.head()) is not None:
                server, stays = self._one(client, server, _Head(raw), pipe)
                if not stays:
                    break
        except _Gone:
            pass
        except BaseException as e:
            if not self._ended.is_set():
                self.failures.append(e)
        finally:
            pipe.close()
            self._close(client)
            if server is not None:
                self._close(server)

    def _opened(self, sock: socket.socket) -> _Stream:
        stream = _Stream(sock)
        with self._lock:
            self._streams.add(stream)
        return stream

    def _close(self, stream: _Stream, *, reset: bool = False) -> None:
        stream.close(reset=reset)
        with self._lock:
            self._streams.discard(stream)

    def _connect(self) -> _Stream:
        try:
            return self._opened(socket.create_connection(self._server, timeout=10))
        except OSError as e:
            raise _Gone(str(e)) from e

    def _one(
        self, client: _Stream, server: _Stream | None, asked: _Head, pipe: _Pipe
    ) -> tuple[_Stream | None, bool]:
        """A request: the connection to the server, and whether the client's stays."""
        method, target, _ = asked.first.decode("latin-1").split(" ", 2)
        url = urllib.parse.urlsplit(target)
        request = Sent(
            method=method,
            key=urllib.parse.unquote(url.path).lstrip("/"),
            query=url.query,
            range=asked.get(b"range") or None,
            began=time.monotonic(),
        )
        with self._lock:
            self._sent.append(request)
        try:
            if (rule := self._rule("before", request)) and rule.call is not None:
                rule.call()
            if rule := self._rule("delay", request):
                self._ended.wait(rule.seconds)
            if self._rule("hang", request):
                while not self._hanging.wait(0.05):
                    if client.has_ended():
                        raise _Gone("the client went away")
                if self._ended.is_set():
                    raise _Gone("the end")
            if rule := self._rule("refuse", request):
                return server, self._refuse(client, asked, request, rule)
            return self._pass(client, server, asked, request, pipe)
        finally:
            request.ended = time.monotonic()

    def _refuse(self, client: _Stream, asked: _Head, request: Sent, rule: _Rule) -> bool:
        request.status = rule.status
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f"<Error><Code>{rule.code}</Code><Message>{rule.text}</Message>"
            "<RequestId>0</RequestId><HostId>0</HostId></Error>"
        ).encode()
        head = (
            f"HTTP/1.1 {rule.status} {rule.code}\r\nContent-Type: application/xml\r\n"
            f"Content-Length: {len(body)}\r\n"
        )
        # The body of the request was not read.
        has_body = asked.is_chunked or bool(asked.length)
        stays = not asked.closes and not has_body
        end = "\r\n" if stays else "Connection: close\r\n\r\n"
        client.send((head + end).encode() + (b"" if request.method == "HEAD" else body))
        return stays

    def _pass(
        self,
        client: _Stream,
        server: _Stream | None,
        asked: _Head,
        request: Sent,
        pipe: _Pipe,
    ) -> tuple[_Stream | None, bool]:
        if server is not None and (not server.open or server.has_ended()):
            self._close(server)
            server = None
        server = server or self._connect()
        server_stays = False
        try:
            head = self._ask(client, server, asked)
            answer = _Head(head)
            request.status = int(answer.first.split(b" ", 2)[1])
            length = answer.length
            bare = request.method == "HEAD" or request.status in (204, 304)
            ends_by_close = not bare and not answer.is_chunked and length is None
            stays = not asked.closes and not ends_by_close
            server_stays = not answer.closes and not ends_by_close
            client.send(answer.raw(close=not stays))
            if bare:
                return server, stays
            self._note_span(answer, request)
            # Bodies of errors pass too, and are no bytes of an object.
            counted = request if request.status in (200, 206) else None
            cut = self._rule("cut", request)
            if cut is not None and length is not None and length > cut.after:
                self._move(server, client, cut.after, pipe, counted)
                request.ended = time.monotonic()
                self._close(client, reset=cut.reset)
                server_stays = False
                raise _Gone("cut")
            if answer.is_chunked:
                self._move_chunks(server, client, pipe, counted)
            else:
                self._move(server, client, length, pipe, counted)
            return server, stays
        except _Gone:
            server_stays = False
            raise
        finally:
            if not server_stays:
                self._close(server)

    def _ask(self, client: _Stream, server: _Stream, asked: _Head) -> bytes:
        """Passes a request on; the head of its answer."""
        server.send(asked.raw(close=False))
        expects = "100-continue" in asked.get(b"expect").lower()
        if expects and server.has_something(CONTINUE_LIMIT):
            head = self._answer(server)
            if not head.split(b" ", 2)[1].startswith(b"1"):
                # Refused before the body: the client sends none.
                return head
            client.send(head)
        if asked.is_chunked:
            self._move_chunks(client, server, None, None)
        elif asked.length:
            self._move(client, server, asked.length, None, None)
        while (head := self._answer(server)).split(b" ", 2)[1].startswith(b"1"):
            if not expects:
                client.send(head)
        return head

    @staticmethod
    def _answer(server: _Stream) -> bytes:
        head = server.head()
        if head is None:
            raise _Gone("the server closed without an answer")
        return head

    @staticmethod
    def _note_span(answer: _Head, request: Sent) -> None:
        span = answer.get(b"content-range")
        if request.status == 206 and span.startswith("bytes "):
            first, _, last = span[6:].split("/")[0].partition("-")
            request.first, request.behind = int(first), int(last) + 1
        elif request.status == 200:
            request.behind = answer.length or 0

    def _move(
        self,
        source: _Stream,
        sink: _Stream,
        left: int | None,
        pipe: _Pipe | None,
        counted: Sent | None,
    ) -> None:
        """So many bytes; None: up to the end. With a pipe they are paced."""
        while left is None or left > 0:
            piece = PIECE if pipe is None else self._pace.piece()
            most = piece if left is None else min(left, piece)
            if source.ahead or pipe is None:
                if not source.ahead and not source._more():
                    got = 0
                else:
                    data = bytes(source.ahead[:most])
                    _count(counted, len(data))
                    sink.send(data)
                    del source.ahead[: len(data)]
                    got = len(data)
            else:
                got = pipe.move(source.sock, sink.sock, most, counted)
            if got == 0:
                if left is None:
                    return
                raise _Gone("closed within a body")
            if left is not None:
                left -= got
            if pipe is not None:
                self._pace.wait(got)

    def _move_chunks(
        self, source: _Stream, sink: _Stream, pipe: _Pipe | None, counted: Sent | None
    ) -> None:
        """A chunked body with its framing and trailers."""
        while True:
            line = source.line()
            sink.send(line)
            length = int(line.split(b";")[0], 16)
            if length == 0:
                break
            self._move(source, sink, length, pipe, counted)
            sink.send(source.line())
        while True:
            line = source.line()
            sink.send(line)
            if line == b"\r\n":
                return


def _count(counted: Sent | None, count: int) -> None:
    """Counts bytes before they are sent: a client that has them may look at once."""
    if counted is not None:
        counted.bytes += count


def _spans_of_time(one: Sent) -> tuple[float, float]:
    return one.began, one.ended if one.ended is not None else float("inf")


def _spans_of_bytes(one: Sent) -> tuple[float, float]:
    return one.first, one.first + one.bytes


def _most(all: Iterable[Sent], span: Callable[[Sent], tuple[float, float]]) -> int:
    """Most spans that share a point. One that begins where another ends shares none with it."""
    edges = []
    for one in all:
        first, behind = span(one)
        if first < behind:
            edges += [(first, 1), (behind, -1)]
    most = now = 0
    for _, step in sorted(edges):
        now += step
        most = max(most, now)
    return most

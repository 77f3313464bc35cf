"""A proxy between us and a store, which spoils requests: lost, refused, answered by an error, cut short."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

Fault = tuple[bool, int | None]
"""What is done to a request: is it passed on? And what is answered: a status, or None for nothing at all."""
FAULTS: Final[dict[str, Fault]] = {
    "lost on the way": (False, None),
    "done, and the answer is lost": (True, None),
    "500, not done": (False, 500),
    "500, but done": (True, 500),
    "503": (False, 503),
    "409": (False, 409),
}


class Proxy(ThreadingHTTPServer):
    """Passes everything on, but spoils the next requests of a method as it is told."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = port
        self.seen: list[tuple[str, str]] = []
        self.body = b""
        self._lock = threading.Lock()
        self._method, self._left = "", 0
        self._fault: Fault = (True, None)
        self._cut = False

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def spoil(self, method: str, fault: str, times: int = 1) -> None:
        """The next requests of a method meet this fault."""
        self._set(method, times, FAULTS[fault], b"")

    def refuse(self, method: str, status: int, body: bytes) -> None:
        """Every request of a method is answered so, and not passed on."""
        self._set(method, 1_000, (False, status), body)

    def _set(self, method: str, times: int, fault: Fault, body: bytes) -> None:
        self._method, self._left, self._fault, self._cut, self.body = method, times, fault, False, body

    def cut(self, times: int) -> None:
        """The next answers to GETs end in the middle."""
        self._method, self._left, self._cut = "GET", times, True

    def fault_of(self, method: str, path: str) -> Fault | str | None:
        with self._lock:
            self.seen.append((method, path))
            if method != self._method or not self._left:
                return None
            self._left -= 1
            return "cut" if self._cut else self._fault

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def log_message(self, format: str, *args: Any) -> None:
        return None

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.fault_of(self.command, self.path)
        if isinstance(fault, tuple):
            sent, status = fault
            if sent:
                self._ask(body)
            if status is not None:
                self._answer(status, {}, self.server.body)
            self.close_connection = True
            return
        status, headers, answer = self._ask(body)
        if fault == "cut":
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer[: len(answer) // 2])
            self.close_connection = True
            return
        self._answer(status, headers, answer)

    def _ask(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        store = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=60)
        try:
            store.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                store.putheader(name, value)
            store.endheaders(body)
            answer = store.getresponse()
            content = answer.read()
            headers = {k: v for k, v in answer.getheaders() if k.lower() not in ("transfer-encoding", "connection")}
            if self.command != "HEAD":
                headers["Content-Length"] = str(len(content))
            return answer.status, headers, content
        finally:
            store.close()

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in (headers or {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on  # noqa: N815


@contextmanager
def running_proxy(port: int) -> Iterator[Proxy]:
    """A proxy before the store at this port of the loopback."""
    proxy = Proxy(port)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()

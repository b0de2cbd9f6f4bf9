"""One request after the other over connections that are kept, with deadlines."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
import weakref
from typing import Any, Callable, Dict, Optional, Tuple
from urllib.parse import urlsplit

from .errors import GristmillError, Problem, Unavailable, Unknown

# What a keep-alive connection, a proxy or a killed service looks like from here.
BROKEN = (OSError, http.client.HTTPException)


class Transport:
    """A connection a thread."""

    def __init__(
        self,
        url: str,
        timeout: float,
        token: Optional[str] = None,
        ca: Optional[str] = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise GristmillError(f"{url!r} is no address: write it like http://127.0.0.1:4747")
        self._trusts: Optional[ssl.SSLContext] = None
        if parts.scheme == "https":
            try:
                self._trusts = ssl.create_default_context(cafile=ca)
            except OSError as error:
                raise GristmillError(f"the authority {ca!r} cannot be read: {error}") from error
        self._host, self._port = parts.hostname, parts.port or 4747
        self._timeout = timeout
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._local = threading.local()
        self._lock = threading.Lock()
        self._waiting: Dict[int, http.client.HTTPConnection] = {}
        self._all: "weakref.WeakSet[http.client.HTTPConnection]" = weakref.WeakSet()

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        connection: Optional[http.client.HTTPConnection] = getattr(self._local, "kept", None)
        if connection is None:
            if self._trusts is None:
                connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
            else:
                connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=timeout, context=self._trusts
                )
            self._local.kept = connection
            with self._lock:
                self._all.add(connection)
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        return connection

    def interrupt(self) -> None:
        """Ends the calls that wait, in whatever thread."""
        with self._lock:
            waiting = list(self._waiting.values())
        for connection in waiting:
            sock = connection.sock
            if sock is not None:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self) -> None:
        """Closes every thread's connection. A later call opens another."""
        with self._lock:
            connections = list(self._all)
        for connection in connections:
            connection.close()

    def drop(self) -> None:
        """Closes this thread's connection."""
        connection = getattr(self._local, "kept", None)
        self._local.kept = None
        if connection is not None:
            connection.close()

    def once(
        self, method: str, path: str, body: Any = None, wait: float = 0.0
    ) -> Tuple[int, Any]:
        """One request and its answer. Raises `Unavailable` where it was not sent, and
        `Unknown` where it was and no whole answer came."""
        text = None if body is None else json.dumps(body, allow_nan=False).encode()
        headers = dict(self._headers)
        if text is not None:
            headers["content-type"] = "application/json"
        connection = self._connection(self._timeout + wait)
        try:
            if connection.sock is None:
                connection.connect()
                if connection.sock is not None:
                    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BROKEN as error:
            self.drop()
            raise Unavailable(f"the service does not answer: {error}") from error
        me = threading.get_ident()
        if wait:
            with self._lock:
                self._waiting[me] = connection
        try:
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
            said = answer.read()
        except BROKEN as error:
            self.drop()
            raise Unknown(f"no answer came: {error!r}") from error
        finally:
            if wait:
                with self._lock:
                    self._waiting.pop(me, None)
        if answer.will_close:
            self.drop()
        try:
            value = json.loads(said) if said else None
        except ValueError as error:
            self.drop()
            raise Unknown(f"the answer is not JSON: {error}") from error
        return answer.status, value

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        wait: float = 0.0,
        repeatable: bool = True,
        patience: float = 30.0,
        give_up: Callable[[], bool] = lambda: False,
    ) -> Any:
        """A request that is repeated while the service is away, and, where that is no
        harm, when nobody knows whether it happened."""
        until = time.monotonic() + patience
        pause = 0.05
        while True:
            try:
                status, said = self.once(method, path, body, wait)
            except Unavailable as error:
                last: GristmillError = error
            except Unknown as error:
                if not repeatable:
                    raise
                last = error
            else:
                if status < 400:
                    return said
                problem = as_problem(status, said)
                if status == 503:
                    last = Unavailable(str(problem))
                elif status == 504:
                    last = Unknown(str(problem))
                    if not repeatable:
                        raise last
                else:
                    raise problem
            if give_up() or time.monotonic() + pause > until:
                raise last
            time.sleep(pause)
            pause = min(pause * 2, 2.0)


def as_problem(status: int, said: Any) -> Problem:
    """What the service said, or what can be said of an answer that is not its own."""
    if isinstance(said, dict) and "code" in said:
        return Problem(said)
    fields: Dict[str, Any] = {"status": status, "code": f"http_{status}", "detail": str(said)[:200]}
    return Problem(fields)

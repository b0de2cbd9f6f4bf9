"""The client: what a program says to the service.

Puts carry an id and claims a token of their own, so that one whose answer was lost is
repeated without harm.
"""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import replace
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union
from urllib.parse import quote, urlencode

from .errors import Problem, Refused
from .model import Claim, Extended, Put, PutAnswer, Result, Settled, Settlement
from .transport import Transport

DEFAULT_URL = "http://127.0.0.1:4747"
FLUSH = 1000
POLL = 20.0


class Client:
    """A service. Threads may share one; each has a connection of its own.

    `token` is what `gristmill token create` showed; else GRISTMILL_TOKEN. `ca` is a file
    with the authority that an https service's certificate comes from, else GRISTMILL_CA,
    else the system's. `patience` is how long, in seconds, a call is repeated while the
    service is away.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        token: Optional[str] = None,
        ca: Optional[str] = None,
        timeout: float = 30.0,
        patience: float = 30.0,
    ) -> None:
        self.url = url or os.environ.get("GRISTMILL_URL") or DEFAULT_URL
        self._token = token or os.environ.get("GRISTMILL_TOKEN") or None
        self._ca = ca or os.environ.get("GRISTMILL_CA") or None
        self._transport = Transport(self.url, timeout, self._token, self._ca)
        self._patience = patience

    def another(self, *, timeout: float, patience: float) -> "Client":
        """A client of the same service with connections and deadlines of its own."""
        return Client(
            self.url, token=self._token, ca=self._ca, timeout=timeout, patience=patience
        )

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, method: str, path: str, body: Any = None, **how: Any) -> Any:
        """Any route of the service, for what has no method here."""
        how.setdefault("patience", self._patience)
        return self._transport.call(method, path, body, **how)

    # ---- putting -------------------------------------------------------------

    def put(
        self,
        queue: str,
        payload: Any,
        *,
        key: Optional[str] = None,
        delay: Optional[str] = None,
        run_at: Optional[str] = None,
        priority: Optional[int] = None,
        group: Optional[str] = None,
        source: Optional[str] = None,
        id: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
        encoding: Optional[str] = None,
        timeout: Optional[str] = None,
        max_attempts: Union[int, str, None] = None,
        backoff: Optional[Mapping[str, Any]] = None,
        wanted: bool = False,
    ) -> PutAnswer:
        """Puts one task. Raises `Refused` when it is not taken. With `wanted` what comes
        of it is kept for ten minutes: `result` waits for it."""
        put = Put(
            payload, key, delay, run_at, priority, group, source, id, headers, encoding, timeout,
            max_attempts, backoff, wanted,
        )
        try:
            said = self.call("POST", _tasks(queue), _named(put).to_json())
        except Problem as problem:
            raise Refused(problem.said) from None
        return PutAnswer.of(said)

    def put_many(
        self, queue: str, tasks: Iterable[Any], *, flush: int = FLUSH, atomic: bool = False
    ) -> Iterator[PutAnswer]:
        """Puts any number of tasks, a flush at a time, and gives an answer each, in
        order. A task is a `Put`, or just a payload. With `atomic` all are one flush: all
        of them or none."""
        batch: List[Dict[str, Any]] = []
        for task in tasks:
            put = task if isinstance(task, Put) else Put(task)
            batch.append(_named(put).to_json())
            if len(batch) >= flush and not atomic:
                yield from self._flush(queue, batch, atomic)
                batch = []
        if batch:
            yield from self._flush(queue, batch, atomic)

    def _flush(
        self, queue: str, batch: List[Dict[str, Any]], atomic: bool
    ) -> Iterator[PutAnswer]:
        path = _tasks(queue) + ("?atomic=true" if atomic else "")
        try:
            said = self.call("POST", path, batch)
        except Problem as problem:
            raise Refused(problem.said) from None
        return map(PutAnswer.of, said)

    # ---- working -------------------------------------------------------------

    def claim(
        self,
        queues: Sequence[str],
        *,
        max: int = 1,
        lease: Optional[str] = None,
        wait: float = 0.0,
        worker: Optional[str] = None,
        source: Optional[str] = None,
        token: Optional[str] = None,
        give_up: Callable[[], bool] = lambda: False,
    ) -> Claim:
        """Takes tasks of one of the queues; waits up to `wait` seconds for some. While
        the service is away it asks again, unless `give_up` says not to."""
        asked: Dict[str, Any] = {
            "queues": list(queues),
            "max": max,
            "wait": f"{int(wait * 1000)}ms",
            "token": token or secrets.token_hex(16),
        }
        for name, value in (("lease", lease), ("worker", worker), ("source", source)):
            if value is not None:
                asked[name] = value
        return Claim.of(self.call("POST", "/v1/claims", asked, wait=wait, give_up=give_up))

    def settle(self, settlements: Iterable[Settlement]) -> List[Settled]:
        """Says how attempts ended; one answer each."""
        said = [settlement.to_json() for settlement in settlements]
        if not said:
            return []
        return [Settled.of(one) for one in self.call("POST", "/v1/settlements", said)]

    def extend(self, queue: str, token: str, lease: str) -> Extended:
        """Prolongs a lease."""
        asked = [{"queue": queue, "token": token, "lease": lease}]
        return Extended.of(self.call("POST", "/v1/extensions", asked)[0])

    # ---- looking and operating -------------------------------------------------

    def task(self, id: str, *, wait: float = 0.0) -> Dict[str, Any]:
        """One task; with `wait`, when it has ended or the time is over."""
        query = f"?wait={int(wait * 1000)}ms" if wait else ""
        said: Dict[str, Any] = self.call("GET", f"/v1/tasks/{quote(id, safe='')}{query}", wait=wait)
        return said

    def result(self, id: str, *, wait: float = 0.0) -> Result:
        """What came of a task; waits up to `wait` seconds for its end. Put it with
        `wanted`, or let its queue keep what handlers return."""
        until = time.monotonic() + wait
        while True:
            left = max(0.0, until - time.monotonic())
            try:
                result = Result.of(self.task(id, wait=min(left, POLL)))
            except Problem as problem:
                if problem.code != "unknown_task":
                    raise
                return Result("not_known")
            if result.state != "open" or left <= 0:
                return result

    def put_and_wait(self, queue: str, payload: Any, *, wait: float = 30.0, **more: Any) -> Result:
        """Puts one task and waits up to `wait` seconds for what comes of it; of a
        duplicate, for what comes of the task that stands."""
        id = self.put(queue, payload, wanted=True, **more).id
        assert id is not None
        return self.result(id, wait=wait)

    def tasks(self, **filters: Any) -> Iterator[Dict[str, Any]]:
        """All tasks that match: queue, state, key, group, source, error, since, order."""
        query = {name: value for name, value in filters.items() if value is not None}
        while True:
            page = self.call("GET", f"/v1/tasks?{urlencode(query)}")
            yield from page["tasks"]
            if page["next"] is None:
                return
            query["cursor"] = page["next"]

    def find(self, queue: str, keys: Sequence[str]) -> List[Dict[str, Any]]:
        """Which of these keys stand, and where."""
        said: List[Dict[str, Any]] = self.call(
            "POST", "/v1/find", {"queue": queue, "keys": list(keys)}
        )["standing"]
        return said

    def stats(self) -> List[Dict[str, Any]]:
        """The numbers of every queue."""
        said: List[Dict[str, Any]] = self.call("GET", "/v1/stats")
        return said

    def declare(self, queue: str, **settings: Any) -> Dict[str, Any]:
        """Says that a queue exists, with these settings."""
        path = f"/v1/queues/{quote(queue, safe='')}"
        said: Dict[str, Any] = self.call("PUT", path, {"settings": settings})
        return said

    def operate(
        self,
        action: str,
        *,
        ids: Optional[Sequence[str]] = None,
        filter: Optional[Mapping[str, str]] = None,
        note: Optional[str] = None,
        by: Optional[str] = None,
    ) -> int:
        """Does `retry`, `discard`, `cancel` or `resolve` to tasks, by ids or all that
        match a filter; returns how many were moved. A filter is carried out by the
        service, also when this program ends: `operation` and `stop_operation` look
        after it."""
        asked: Dict[str, Any] = {"note": note, "by": by}
        if ids is not None:
            asked["ids"] = list(ids)
        if filter is not None:
            asked["filter"] = dict(filter)
        said: Dict[str, Any] = self.call("POST", f"/v1/tasks/{action}", asked)
        while said.get("state") in ("running", "stopping"):
            time.sleep(0.1)
            said = self.operation(said["id"])
        if said.get("state") == "failed":
            raise Refused({"code": "operation_failed", "detail": str(said.get("why"))})
        return int(said["moved"])

    def operation(self, id: str) -> Dict[str, Any]:
        """How an operation on all tasks that match a filter fares."""
        said: Dict[str, Any] = self.call("GET", f"/v1/operations/{quote(id, safe='')}")
        return said

    def stop_operation(self, id: str, by: Optional[str] = None) -> Dict[str, Any]:
        """Has an operation end after the step it is at."""
        path = f"/v1/operations/{quote(id, safe='')}/stop"
        said: Dict[str, Any] = self.call("POST", path, {"by": by})
        return said


def _tasks(queue: str) -> str:
    return f"/v1/queues/{quote(queue, safe='')}/tasks"


def _named(put: Put) -> Put:
    """The put with an id, by which it can be repeated."""
    return put if put.id is not None else replace(put, id=secrets.token_hex(16))

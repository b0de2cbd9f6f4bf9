"""The worker: claims, runs handlers, keeps their leases alive, settles, stops.

Each processor is a thread with one batch at a time. Leases are extended by a thread of
its own, so that a handler that computes loses none; a lease that could not be extended
in its time counts as lost, whatever the service says later.
"""

from __future__ import annotations

import logging
import secrets
import signal
import socket
import threading
import time
import traceback
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from .client import Client
from .errors import Fail, GristmillError, Release, Retry
from .model import Claim, ClaimedTask, Put, Settlement

log = logging.getLogger("gristmill")

ERROR_BYTES = 4000
WAIT = 20.0


class Task:
    """A task in a handler's hands."""

    def __init__(self, claimed: ClaimedTask, lease: "_Lease") -> None:
        self.claimed = claimed
        self._lease = lease
        self._follow_ups: List[Dict[str, Any]] = []
        self._result: Any = None
        self._said: Optional[Dict[str, Any]] = None
        self._outcome: Optional[Settlement] = None
        self._cancelled = threading.Event()
        self._lost = threading.Event()
        # Somebody settles it: who gives it back at a stop, or who ran it, not both. A
        # handler that ends because the worker does has not done its task.
        self._taken = False

    @property
    def id(self) -> str:
        return self.claimed.id

    @property
    def queue(self) -> str:
        return self.claimed.queue

    @property
    def payload(self) -> Any:
        return self.claimed.payload

    @property
    def key(self) -> Optional[str]:
        return self.claimed.key

    @property
    def attempt(self) -> int:
        return self.claimed.attempt

    @property
    def headers(self) -> Mapping[str, str]:
        return self.claimed.headers

    @property
    def cancelled(self) -> bool:
        """Whether to stop: an operator cancelled the task, or its lease is lost. A long
        handler looks now and then."""
        return self._cancelled.is_set() or self.lost

    @property
    def lost(self) -> bool:
        """Whether the task belongs to somebody else by now: nothing it does counts."""
        return self._lost.is_set() or self._lease.over()

    def follow_up(self, queue: str, payload: Any, **more: Any) -> None:
        """Puts a task together with this one's `done`: both or neither."""
        said = Put(payload, **more).to_json()
        said["queue"] = queue
        self._follow_ups.append(said)

    def progress(self, done: int, total: Optional[int] = None, message: str = "") -> None:
        """Says how far it is, for whoever looks: the last word goes along with the next
        heartbeat, at most once a second, so this may be called for every row."""
        self._said = {
            "id": self.id,
            "done": _whole(done),
            "total": None if total is None else _whole(total),
            "message": str(message)[:1000],
        }

    def result(self, value: Any) -> None:
        """Returns a value, with `done`, for whoever waits for the task: anything that has a
        form in JSON, up to 64 KiB."""
        self._result = value

    def done(self) -> None:
        """It succeeded. What a handler of batches says of one task itself stands."""
        self._settle("done", follow_ups=self._follow_ups, result=self._result)

    def error(self, error: str) -> None:
        """It went wrong: the queue decides between another run and failed."""
        self._settle("error", error=_cut(error))

    def retry(self, after: str, reason: Optional[str] = None) -> None:
        """Run it again after this time."""
        self._settle("retry", after=after, error=reason)

    def fail(self, error: str) -> None:
        """It can never succeed."""
        self._settle("fail", error=_cut(error))

    def release(self, after: Optional[str] = None) -> None:
        """Give it back; the attempt does not count."""
        self._settle("release", after=after)

    def _settle(self, outcome: str, **more: Any) -> None:
        self._outcome = Settlement(self.id, self._lease.token, outcome, **more)


Handler = Union[Callable[[Task], Any], Callable[[List[Task]], Any]]


@dataclass
class _Served:
    handler: Handler
    batch: Optional[int]


@dataclass
class _Lease:
    """The lease of one claim, as this process sees it."""

    token: str
    queue: str
    length: float
    asked: float
    """When it was asked for or last extended: it ends no earlier than this much later."""
    tasks: Dict[str, Task] = field(default_factory=dict)
    lost: bool = False

    def has_news(self) -> bool:
        return any(task._said is not None for task in list(self.tasks.values()))

    def take_news(self) -> List[Dict[str, Any]]:
        """How far its tasks are, where nobody was told yet."""
        news = []
        for task in list(self.tasks.values()):
            said, task._said = task._said, None
            if said is not None:
                news.append(said)
        return news

    def put_back(self, news: List[Dict[str, Any]]) -> None:
        """Nobody heard of these: they are told next time, unless there is more by then."""
        for said in news:
            task = self.tasks.get(said["id"])
            if task is not None and task._said is None:
                task._said = said

    def over(self) -> bool:
        return self.lost or time.monotonic() > self.asked + self.length


class Worker:
    """Runs handlers for queues.

    `processors` is how many run side by side, `batch` how many tasks a claim takes at
    most for a handler of single tasks, `lease` how long a claim lasts unless extended.
    """

    def __init__(
        self,
        client: Optional[Client] = None,
        *,
        processors: int = 1,
        batch: int = 1,
        lease: Optional[str] = None,
        source: Optional[str] = None,
        stop_within: float = 30.0,
        name: Optional[str] = None,
    ) -> None:
        self.client = client or Client()
        self.id = name or f"py-{socket.gethostname()[:32]}-{secrets.token_hex(6)}".replace("_", "-")
        self._processors = processors
        self._batch = batch
        self._lease_text = lease
        self._source = source
        self._stop_within = stop_within
        self._served: Dict[str, _Served] = {}
        self._leases: Dict[str, _Lease] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._turn = 0
        self._tells = 0.0
        self.counts = {"done": 0, "failed": 0, "other": 0}

    def task(
        self, queue: str, *, batch: Optional[int] = None
    ) -> Callable[[Handler], Handler]:
        """The handler of a queue: called with a `Task`, or, with `batch`, with a list of
        up to so many. It returns: done. It raises: an error, unless it is `Retry`, `Fail`
        or `Release`."""

        def register(handler: Handler) -> Handler:
            if queue in self._served:
                raise GristmillError(f"queue {queue!r} has a handler already")
            self._served[queue] = _Served(handler, batch)
            return handler

        return register

    # ---- running ---------------------------------------------------------------

    def run(self, *, signals: bool = True) -> None:
        """Works until `stop()` is called, or SIGTERM or Ctrl-C comes: then no more is
        claimed, what runs may finish, and the rest is given back."""
        if not self._served:
            raise GristmillError("no queue has a handler: use @worker.task(...)")
        before: Dict[int, Any] = {}
        if signals and threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                before[number] = signal.signal(number, lambda *_: self._signalled(before))
        threads = [
            threading.Thread(target=self._process, name=f"gristmill-{n}", daemon=True)
            for n in range(self._processors)
        ]
        beating = threading.Thread(target=self._beat, name="gristmill-beat", daemon=True)
        beating.start()
        for thread in threads:
            thread.start()
        try:
            # In short steps: a wait without end would hold a signal's handler up.
            while any(thread.is_alive() for thread in threads):
                if self._stopping.is_set():
                    self._finish(threads)
                    return
                self._stopping.wait(0.2)
        finally:
            self._ended.set()
            for kept, handler in before.items():
                signal.signal(kept, handler)

    def _signalled(self, before: Dict[int, Any]) -> None:
        if self._stopping.is_set():
            # Once more: what runs is left, and comes back when its lease ends.
            for number, handler in before.items():
                signal.signal(number, handler)
            raise KeyboardInterrupt
        self.stop()

    def stop(self) -> None:
        """Asks for the end. `run` returns when what runs has finished."""
        self._stopping.set()
        # Whoever waits for work hears it by the end of its connection; a task that was
        # on its way is given back by the service.
        self.client._transport.interrupt()

    def _finish(self, threads: List[threading.Thread]) -> None:
        until = time.monotonic() + self._stop_within
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        with self._lock:
            held = [task for lease in self._leases.values() for task in lease.tasks.values()]
        left = self._taken(held)
        for task in left:
            task._cancelled.set()
        if left:
            log.warning("%d tasks still run and are given back", len(left))
            self._settle([Settlement(t.id, t._lease.token, "release") for t in left])

    def _process(self) -> None:
        try:
            self._rounds()
        finally:
            self.client._transport.drop()

    def _rounds(self) -> None:
        pause = 0.1
        while not self._stopping.is_set():
            try:
                lease = self._claim()
                pause = 0.1
            except GristmillError as error:
                if self._stopping.is_set():
                    return
                log.warning("nothing could be claimed: %s", error)
                self._stopping.wait(pause)
                pause = min(pause * 2, 5.0)
                continue
            if lease is None:
                continue
            try:
                self._work(lease)
            finally:
                with self._lock:
                    self._leases.pop(lease.token, None)

    def _claim(self) -> Optional[_Lease]:
        with self._lock:
            queues = list(self._served)
            self._turn += 1
            turn = self._turn % len(queues)
        queues = queues[turn:] + queues[:turn]
        sizes = {name: served.batch or self._batch for name, served in self._served.items()}
        # One claim has one size: queues of other sizes have their turn at another time.
        size = sizes[queues[0]]
        queues = [queue for queue in queues if sizes[queue] == size]
        alone = len(queues) == len(self._served)
        asked = time.monotonic()
        claim = self.client.claim(
            queues,
            max=size,
            lease=self._lease_text,
            wait=WAIT if alone else 1.0,
            worker=self.id,
            source=self._source,
            give_up=self._stopping.is_set,
        )
        if claim.tasks and time.monotonic() - asked > claim.lease / 4:
            # The lease began somewhere in the wait: where, is known once it is extended.
            asked = time.monotonic()
            lease = f"{int(claim.lease * 1000)}ms"
            if self.client.extend(str(claim.queue), claim.token, lease).outcome != "extended":
                return None
        return self._held(claim, asked)

    def _held(self, claim: Claim, asked: float) -> Optional[_Lease]:
        if not claim.tasks or claim.queue is None:
            return None
        lease = _Lease(claim.token, claim.queue, claim.lease, asked)
        lease.tasks = {task.id: Task(task, lease) for task in claim.tasks}
        with self._lock:
            self._leases[lease.token] = lease
        return lease

    def _work(self, lease: _Lease) -> None:
        served = self._served[lease.queue]
        tasks = list(lease.tasks.values())
        if served.batch is not None:
            self._run(served.handler, tasks, tasks)
            self._close(lease, tasks)
            return
        for task in tasks:
            if self._stopping.is_set():
                task._settle("release", started=False)
            elif not task.cancelled:
                self._run(served.handler, task, [task])
            self._close(lease, [task])

    def _run(self, handler: Any, argument: Any, tasks: Sequence[Task]) -> None:
        """Calls a handler. What it leaves open is settled by how it ended."""
        settle: Callable[[Task], None]
        try:
            handler(argument)
            settle = Task.done
        except Retry as retry:
            after, reason = retry.after, retry.reason or None
            settle = lambda task: task.retry(after, reason)  # noqa: E731
        except Fail as fail:
            text = str(fail) or "failed"
            settle = lambda task: task.fail(text)  # noqa: E731
        except Release as release:
            later = release.after
            settle = lambda task: task.release(later)  # noqa: E731
        except Exception:
            text = traceback.format_exc()
            log.warning("a handler failed: %s", text.strip().splitlines()[-1])
            settle = lambda task: task.error(text)  # noqa: E731
        for task in tasks:
            if task._outcome is None:
                settle(task)

    def _taken(self, tasks: Sequence[Task]) -> List[Task]:
        """Those of the tasks that nobody settles yet; from now on the caller does."""
        with self._lock:
            free = [task for task in tasks if not task._taken]
            for task in free:
                task._taken = True
        return free

    def _close(self, lease: _Lease, tasks: Sequence[Task]) -> None:
        said: List[Settlement] = []
        for task in self._taken(tasks):
            if task.lost:
                log.warning("task %s lost its lease: what it did is done again", task.id)
            elif task._cancelled.is_set():
                said.append(Settlement(task.id, lease.token, "cancelled"))
            elif task._outcome is not None:
                said.append(task._outcome)
        self._settle(said)
        with self._lock:
            for task in tasks:
                lease.tasks.pop(task.id, None)

    def _settle(self, said: List[Settlement]) -> None:
        try:
            answers = self.client.settle(said)
        except GristmillError as error:
            log.error("%d tasks could not be settled, and run again: %s", len(said), error)
            return
        for answer in answers:
            became = answer.became or answer.outcome
            self.counts[became if became in self.counts else "other"] += 1
            if answer.outcome == "lease_lost":
                log.warning("task %s had lost its lease", answer.id)

    # ---- the heartbeat ------------------------------------------------------------

    def _beat(self) -> None:
        """Extends leases when a quarter of them has passed."""
        # A client of its own: it must not stand behind a call that waits.
        with self.client.another(timeout=5.0, patience=0.0) as client:
            self._beat_with(client)

    def _beat_with(self, client: Client) -> None:
        while not self._ended.is_set():
            now = time.monotonic()
            with self._lock:
                held = [lease for lease in self._leases.values() if not lease.over()]
            tells = now >= self._tells
            due = [
                lease
                for lease in held
                if now >= lease.asked + lease.length / 4 or (tells and lease.has_news())
            ]
            if due:
                self._extend(client, due, tells)
            nearest = min((lease.asked + lease.length / 4 - now for lease in held), default=0.25)
            self._ended.wait(min(0.25, max(0.02, nearest)))

    def _extend(self, client: Client, due: List[_Lease], tells: bool) -> None:
        asked = time.monotonic()
        news = [one.take_news() if tells else [] for one in due]
        if any(news):
            self._tells = asked + 1.0
        said: List[Dict[str, Any]] = [
            {"queue": one.queue, "token": one.token, "lease": f"{int(one.length * 1000)}ms"}
            for one in due
        ]
        for one, told in zip(said, news):
            if told:
                one["progress"] = told
        try:
            answers = client.call("POST", "/v1/extensions", said, repeatable=False)
        except GristmillError as error:
            log.warning("leases could not be extended: %s", error)
            for lease, told in zip(due, news):
                lease.put_back(told)
            self._ended.wait(0.1)
            return
        for lease, answer in zip(due, answers):
            if answer["outcome"] != "extended":
                with self._lock:
                    still = bool(lease.tasks)
                lease.lost = still
                continue
            lease.asked = asked
            for name, ids in (("_cancelled", answer["cancelled"]), ("_lost", answer["lost"])):
                for id in ids:
                    task = lease.tasks.get(id)
                    if task is not None:
                        getattr(task, name).set()


def _whole(number: float) -> int:
    """A number that the service takes: what it refused would cost the lease."""
    return max(0, min(int(number), 2**53 - 1))


def _cut(text: str) -> str:
    """The text's end, where an exception says what went wrong."""
    raw = text.encode()
    return text if len(raw) <= ERROR_BYTES else raw[-ERROR_BYTES:].decode(errors="replace")

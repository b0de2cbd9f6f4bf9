"""The client against a real service, whose address is in GRISTMILL_URL.

Run by `cargo test` of this repository, or by hand: GRISTMILL_URL=http://127.0.0.1:4747
python3 -m unittest discover clients/python/tests
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from gristmill import (  # noqa: E402
    Client,
    Fail,
    GristmillError,
    Put,
    Refused,
    Release,
    Result,
    Retry,
    Settlement,
    Task,
    Unavailable,
    Worker,
)


def until(what: str, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, f"{what} never came true"
        time.sleep(0.01)


class WithService(unittest.TestCase):
    def setUp(self) -> None:
        self.client = Client()
        self.addCleanup(self.client.close)
        self.queue = f"q-{uuid.uuid4().hex[:12]}"
        self.client.declare(self.queue, max_attempts=3, backoff={"base": "1ms", "jitter": False})

    def stats(self) -> Dict[str, Any]:
        return next(one for one in self.client.stats() if one["queue"] == self.queue)

    def run_until(self, worker: Worker, holds: Callable[[], bool]) -> None:
        running = threading.Thread(target=worker.run, kwargs={"signals": False})
        running.start()
        try:
            until("the work", holds)
        finally:
            began = time.monotonic()
            worker.stop()
            running.join(10)
            self.assertFalse(running.is_alive())
            # Who waits for work does not hold up a stop.
            self.assertLess(time.monotonic() - began, 5)


class Putting(WithService):
    def test_put_and_claim_and_settle(self) -> None:
        first = self.client.put(self.queue, {"to": "ada"}, key="ada", headers={"a": "b"})
        self.assertTrue(first.enqueued)
        self.assertEqual(self.client.put(self.queue, 1, key="ada").outcome, "duplicate")
        self.assertEqual(self.client.find(self.queue, ["ada"])[0]["place"], "waiting")
        claim = self.client.claim([self.queue], max=5, lease="5s", worker="w")
        self.assertEqual((claim.queue, claim.lease), (self.queue, 5.0))
        task = claim.tasks[0]
        self.assertEqual((task.payload, task.key, task.attempt), ({"to": "ada"}, "ada", 1))
        self.assertEqual(self.client.extend(self.queue, claim.token, "9s").outcome, "extended")
        answers = self.client.settle([Settlement(task.id, claim.token, "done")])
        self.assertEqual((answers[0].outcome, answers[0].became), ("recorded", "done"))
        # Said twice because an answer was lost, it is no harm.
        again = self.client.settle([Settlement(task.id, claim.token, "done")])
        self.assertEqual(again[0].outcome, "gone")
        self.assertEqual(self.client.claim([self.queue]).tasks, [])

    def test_results_come_to_who_waits(self) -> None:
        worker = Worker(self.client, batch=1)

        @worker.task(self.queue)
        def handle(task: Task) -> None:
            if task.payload == "fail":
                raise Fail("no such thing")
            if task.payload is not None:
                task.result({"twice": task.payload * 2})

        got: List[Any] = []

        def ask() -> None:
            with Client() as client:
                for payload in (21, None, "fail"):
                    got.append(client.put_and_wait(self.queue, payload))
                one = client.put(self.queue, 4, wanted=True).id
                assert one is not None
                got.append(client.result(one, wait=30))
                got.append(client.result(one))

        asking = threading.Thread(target=ask)
        asking.start()
        self.run_until(worker, lambda: not asking.is_alive())
        self.assertEqual(
            got,
            [
                Result("done", {"twice": 42}),
                Result("done"),
                Result("failed", None, "no such thing"),
                Result("done", {"twice": 8}),
                Result("done", {"twice": 8}),
            ],
        )
        open_one = self.client.put(self.queue, 1, wanted=True).id
        assert open_one is not None
        self.assertEqual(self.client.result(open_one).state, "open")
        self.client.operate("cancel", ids=[open_one])
        self.assertEqual(self.client.result(open_one).state, "cancelled")
        self.assertEqual(self.client.result("999999999").state, "not_known")

    def test_bytes_stay_bytes(self) -> None:
        self.client.put(self.queue, b"\xff\x00")
        self.assertEqual(self.client.claim([self.queue]).tasks[0].payload, b"\xff\x00")

    def test_many(self) -> None:
        tasks: List[Any] = [Put(n, key=str(n % 2000)) for n in range(2500)]
        outcomes = [answer.outcome for answer in self.client.put_many(self.queue, tasks)]
        self.assertEqual(outcomes.count("enqueued"), 2000)
        self.assertEqual(outcomes.count("duplicate"), 500)
        self.assertEqual(self.stats()["ready"], 2000)
        self.assertEqual(len(list(self.client.tasks(queue=self.queue, state="ready"))), 2000)
        moved = self.client.operate("cancel", filter={"queue": self.queue}, by="test")
        self.assertEqual(moved, 2000)

    def test_refusals_say_why(self) -> None:
        with self.assertRaises(Refused) as caught:
            self.client.put("no-such-queue", 1)
        self.assertEqual((caught.exception.code, caught.exception.status), ("unknown_queue", 404))
        with self.assertRaises(Refused) as caught:
            self.client.put(self.queue, 1, delay="5")
        self.assertEqual(caught.exception.field, "delay")
        with self.assertRaises(Refused) as caught:
            list(self.client.put_many(self.queue, [Put(1, key="x"), Put(2, key="x")], atomic=True))
        self.assertEqual(caught.exception.code, "undone")
        with self.assertRaises(ValueError):
            self.client.put(self.queue, float("nan"))

    def test_a_service_that_is_away_is_said_so(self) -> None:
        with self.assertRaises(Unavailable):
            Client("http://127.0.0.1:1", patience=0.1).stats()
        with self.assertRaises(GristmillError):
            Client("ftp://example.org")

    def test_the_end_of_a_task_is_waited_for(self) -> None:
        put = self.client.put(self.queue, 1)
        claim = self.client.claim([self.queue])
        ended: List[Any] = []
        assert put.id is not None
        id = put.id
        waiting = threading.Thread(target=lambda: ended.append(self.client.task(id, wait=20)))
        waiting.start()
        self.client.settle([Settlement(id, claim.token, "done")])
        waiting.join(20)
        self.assertEqual(ended[0]["state"], "gone")


class Working(WithService):
    def test_a_handler_runs_each_task(self) -> None:
        worker, seen = Worker(self.client, processors=2), []

        @worker.task(self.queue)
        def handle(task: Task) -> None:
            seen.append(task.payload)

        list(self.client.put_many(self.queue, range(50)))
        self.run_until(worker, lambda: self.stats()["counters"]["done"] == 50)
        self.assertEqual(sorted(seen), list(range(50)))

    def test_what_a_handler_raises_decides(self) -> None:
        worker, runs = Worker(self.client), []
        other = self.queue + "-next"
        self.client.declare(other)

        @worker.task(self.queue)
        def handle(task: Task) -> None:
            runs.append((task.payload, task.attempt))
            if task.payload == "fail":
                raise Fail("never")
            if task.payload == "error":
                raise ValueError("boom")
            if task.payload == "retry" and task.attempt < 2:
                raise Retry("1ms", "not yet")
            if task.payload == "release" and len([r for r in runs if r[0] == "release"]) < 2:
                raise Release()
            if task.payload == "follow":
                task.follow_up(other, {"from": task.id}, key="k")

        for payload in ("fail", "error", "retry", "release", "follow"):
            self.client.put(self.queue, payload)
        self.run_until(worker, lambda: self.stats()["failed"] == 2 and self.stats()["total"] == 2)
        failed = {task["payload"]: task for task in self.client.tasks(queue=self.queue)}
        self.assertEqual(failed["fail"]["error"], "never")
        self.assertIn("ValueError: boom", failed["error"]["error"])
        self.assertEqual(len([run for run in runs if run[0] == "error"]), 3)
        self.assertEqual([run for run in runs if run[0] == "retry"], [("retry", 1), ("retry", 2)])
        self.assertEqual([run for run in runs if run[0] == "release"], [("release", 1)] * 2)
        self.assertEqual(self.client.claim([other]).tasks[0].key, "k")

    def test_batches_settle_one_by_one(self) -> None:
        worker, sizes = Worker(self.client), []

        @worker.task(self.queue, batch=10)
        def handle(tasks: List[Task]) -> None:
            sizes.append(len(tasks))
            for task in tasks:
                if task.payload == 3:
                    task.fail("odd one")

        list(self.client.put_many(self.queue, range(10)))
        self.run_until(worker, lambda: self.stats()["counters"]["done"] == 9)
        self.assertEqual(max(sizes), 10)
        self.assertEqual(self.stats()["failed"], 1)

    def test_a_lease_outlives_its_length(self) -> None:
        worker, ended = Worker(self.client, lease="400ms"), []

        @worker.task(self.queue)
        def handle(task: Task) -> None:
            time.sleep(1.5)
            ended.append((task.attempt, task.lost))

        self.client.put(self.queue, 1)
        self.run_until(worker, lambda: self.stats()["counters"]["done"] == 1)
        self.assertEqual(ended, [(1, False)])

    def test_a_cancelled_task_hears_of_it(self) -> None:
        worker, heard = Worker(self.client, lease="400ms"), threading.Event()

        @worker.task(self.queue)
        def handle(task: Task) -> None:
            self.client.operate("cancel", ids=[task.id], by="test")
            until("the cancel", lambda: task.cancelled)
            heard.set()

        self.client.put(self.queue, 1)
        self.run_until(worker, lambda: self.stats()["counters"]["cancelled"] == 1)
        self.assertTrue(heard.is_set())

    def test_what_does_not_end_is_given_back_and_nothing_else(self) -> None:
        said: List[str] = []
        given_back, over = threading.Event(), threading.Event()

        class Late(Client):
            def settle(self, settlements: Iterable[Settlement]) -> List[Any]:
                ours = list(settlements)
                said.extend(one.outcome for one in ours)
                # Whatever the handler's thread says has come by then.
                if [one.outcome for one in ours] == ["release"]:
                    over.wait(5)
                return super().settle(ours)

        worker = Worker(Late(), stop_within=0.05)

        @worker.task(self.queue)
        def handle(task: Task) -> None:
            worker.stop()
            until("its end", lambda: task.cancelled)
            given_back.set()

        self.client.put(self.queue, 1)
        process = worker._process

        def processed() -> None:
            process()
            over.set()

        worker._process = processed  # type: ignore[method-assign]
        worker.run(signals=False)
        self.assertTrue(given_back.is_set())
        self.assertEqual(said, ["release"])
        [task] = self.client.claim([self.queue]).tasks
        self.assertEqual(task.attempt, 1)

    def test_two_handlers_for_one_queue_are_a_mistake(self) -> None:
        worker = Worker(self.client)
        worker.task(self.queue)(lambda task: None)
        with self.assertRaises(GristmillError):
            worker.task(self.queue)(lambda task: None)
        with self.assertRaises(GristmillError):
            Worker(self.client).run()

    def test_a_process_stops_at_a_signal(self) -> None:
        program = (
            "import sys, time; from gristmill import Worker\n"
            "worker = Worker(batch=5)\n"
            f"@worker.task({self.queue!r})\n"
            "def handle(task):\n"
            "    print('began', flush=True); time.sleep(0.5)\n"
            "worker.run(); print('ended', worker.counts['done'], flush=True)\n"
        )
        list(self.client.put_many(self.queue, range(5)))
        environment = dict(os.environ, PYTHONPATH=str(HERE.parent))
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert process.stdout is not None
        self.assertEqual(process.stdout.readline().strip(), "began")
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=20)
        self.assertIn("ended 1", said)
        # What was claimed and not begun is back at once, and cost no attempt.
        self.assertEqual((self.stats()["ready"], self.stats()["processing"]), (4, 0))
        self.assertEqual(self.client.claim([self.queue]).tasks[0].attempt, 1)


if __name__ == "__main__":
    unittest.main()

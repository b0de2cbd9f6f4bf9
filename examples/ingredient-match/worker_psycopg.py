#!/usr/bin/env python3
"""A worker in Python with psycopg, as a service would run it.

    pip install 'psycopg[binary]'
    DATABASE_URL=postgres://... ./worker_psycopg.py [--source scraper] [--batch 5] [--drain]

Claims lines, matches them, settles each in the transaction of its match. A thread
prolongs the lease meanwhile. On SIGTERM or Ctrl-C the line in hand is finished and
the others are given back, so that another worker has them at once.
"""

import argparse
import os
import signal
import socket
import threading
import time

import psycopg

from worker import bare_name, match

WORKER = f"pg-{socket.gethostname()}-{os.getpid()}"


class Lease:
    """Prolongs a claim's lease from a thread and a connection of its own."""

    def __init__(self, url, token, seconds):
        self.url, self.token, self.seconds = url, token, seconds
        self.lost = threading.Event()
        self.cancelled = set()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.beat, daemon=True)

    def beat(self):
        with psycopg.connect(self.url, autocommit=True) as db:
            while not self.ended.wait(self.seconds / 3):
                extended, cancelled, lost = db.execute(
                    "SELECT extended, cancelled, lost FROM gristmill.extend(%s, %s)",
                    [self.token, self.seconds]).fetchone()
                self.cancelled.update(cancelled, lost)
                if not extended:
                    # Somebody else has the tasks by now.
                    self.lost.set()
                    return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def work(db, id, token, payload, aliases):
    """One line: its match and its settlement are one transaction."""
    ingredient = match(payload["line"], aliases)
    if ingredient is None:
        error = f"no ingredient is called '{bare_name(payload['line'])}'"
        db.execute("SELECT gristmill.fail(%s, %s, %s)", [id, token, error])
        return error
    with db.transaction() as transaction:
        db.execute("UPDATE recipe_line SET ingredient = %s, matched_by = %s, matched_at = now()"
                   " WHERE id = %s", [ingredient, WORKER, payload["line_id"]])
        answer, = db.execute("SELECT gristmill.complete(%s, %s)", [id, token]).fetchone()
        if answer != "recorded":
            # The task went to another worker, who will write the match.
            raise psycopg.Rollback(transaction)
    return f"ingredient {ingredient} ({answer})"


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--source", help="only lines of this source [default: of all]")
    words.add_argument("--batch", type=int, default=5)
    words.add_argument("--lease", type=float, default=30)
    words.add_argument("--slow", type=float, default=0, help="seconds to think about each line")
    words.add_argument("--drain", action="store_true", help="end when nothing is due")
    asked = words.parse_args()
    url = os.environ["DATABASE_URL"]
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    # Autocommit: a claim stands before the work begins. One connection listens for
    # wake-ups, so that a line that was just put need not wait for the next look.
    with psycopg.connect(url, autocommit=True) as db, \
            psycopg.connect(url, autocommit=True) as ear:
        ear.execute('LISTEN "gristmill.wake"')
        aliases = dict(db.execute("SELECT alias, ingredient FROM ingredient_alias").fetchall())
        while not stop.is_set():
            tasks = db.execute(
                "SELECT id, token, payload FROM gristmill.claim(%s, %s, %s, %s, %s)",
                ["ingredient-match", asked.batch, asked.lease, asked.source, WORKER]).fetchall()
            if not tasks and asked.drain:
                return
            if not tasks:
                # A notice ends the wait; a lost one costs a second.
                for _ in ear.notifies(timeout=1, stop_after=1):
                    pass
                continue
            with Lease(url, tasks[0][1], asked.lease) as lease:
                for id, token, payload in tasks:
                    if lease.lost.is_set():
                        break
                    if id in lease.cancelled:
                        continue
                    if stop.is_set():
                        db.execute("SELECT gristmill.release(%s, %s, started => false)",
                                   [id, token])
                        continue
                    time.sleep(asked.slow)
                    print(f"line {payload['line_id']}: {work(db, id, token, payload, aliases)}",
                          flush=True)


if __name__ == "__main__":
    main()

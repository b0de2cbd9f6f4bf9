#!/usr/bin/env python3
"""A worker in Python: claims lines of any or all sources, matches them, settles each.

    DATABASE_URL=postgres://... ./worker.py [--source scraper]... [--batch 5]

Ends when nothing is due. A thread prolongs the lease meanwhile; on SIGTERM or Ctrl-C
the line in hand is finished and the others are given back. It needs nothing but Python
and psql; a service would use its database driver, and call the same functions.
"""

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

SQL = Path(__file__).parent / "sql"
WORKER = f"py-{socket.gethostname()}-{os.getpid()}"
AMOUNT = re.compile(r"^[0-9./ -]*\b(?:(?:g|kg|ml|l|cups?|tbsp|tsp|pinch|cloves?|cans?)\b\s*(?:of\s+)?)?")


def run(script, **variables):
    """Runs a file of statements, or the statements themselves; returns the lines."""
    words = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", os.environ["DATABASE_URL"]]
    for name, value in variables.items():
        words += ["-v", f"{name}={value}"]
    if isinstance(script, Path):
        script = script.read_text()
    # In a group of its own: Ctrl-C is for this worker, which finishes its line.
    done = subprocess.run(words, input=script, stdout=subprocess.PIPE, text=True, check=True,
                          start_new_session=True)
    return done.stdout.splitlines()


def bare_name(line):
    """'2 cups plain flour, sifted' is 'plain flour'."""
    line = re.sub(r"\([^)]*\)", "", line.lower().split(",")[0])
    return AMOUNT.sub("", line).strip()


def match(line, aliases):
    name = bare_name(line)
    for alias in (name, re.sub("s$", "", name), re.sub("e?s$", "", name)):
        if alias in aliases:
            return aliases[alias]
    return None


def work(task, aliases):
    lease = {"id": task["id"], "token": task["token"]}
    ingredient = match(task["line"], aliases)
    if ingredient is None:
        error = f"no ingredient is called '{bare_name(task['line'])}'"
        run(SQL / "unmatched.sql", error=error, **lease)
        return error
    answer = run(SQL / "matched.sql", line_id=task["line_id"], ingredient=ingredient,
                 worker=WORKER, **lease)
    return f"ingredient {ingredient} ({answer[-1]})"


class Lease:
    """Prolongs a claim's lease every third of it, from a thread."""

    def __init__(self, token, seconds):
        self.token, self.seconds = token, seconds
        self.lost, self.ended = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.beat, daemon=True)

    def beat(self):
        while not self.ended.wait(self.seconds / 3):
            try:
                extended = run(SQL / "extend.sql", token=self.token, lease=self.seconds)
            except subprocess.CalledProcessError:
                continue  # the next beat may get through
            if extended == ["f"]:
                self.lost.set()  # somebody else has the tasks by now
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def claim(asked):
    """The next lines, of the first source that has some."""
    for source in asked.source or [""]:
        claimed = run(SQL / "claim.sql", limit=asked.batch, lease=asked.lease,
                      source=source, worker=WORKER)
        if claimed:
            return [json.loads(task) for task in claimed]
    return []


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--source", action="append", help="only of this source, or these")
    words.add_argument("--batch", type=int, default=5)
    words.add_argument("--lease", type=float, default=float(os.environ.get("LEASE_SECONDS", 180)))
    words.add_argument("--slow", type=float, default=0, help="seconds to think about each line")
    asked = words.parse_args()
    rows = run("SELECT alias, ingredient FROM ingredient_alias")
    aliases = dict(row.rsplit("|", 1) for row in rows)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    while not stop.is_set():
        tasks = claim(asked)
        if not tasks:
            return
        with Lease(tasks[0]["token"], asked.lease) as lease:
            for task in tasks:
                # A stop ends the thinking, too.
                if lease.lost.is_set():
                    break
                if stop.wait(asked.slow):
                    run(SQL / "release.sql", id=task["id"], token=task["token"])
                    continue
                print(f"line {task['line_id']}: {work(task, aliases)}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"worker.py: {error}")

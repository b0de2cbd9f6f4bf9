"""A client of a run that speaks SQL to PostgreSQL and writes down what it does.

It needs nothing but Python: the protocol's simple queries over the server's socket
are a page of code. It puts, puts in transactions that it holds open, claims and
settles, all by the functions that any client of the database has.
"""

import json
import os
import random
import socket
import struct
import sys
import time
import urllib.parse

# Not the one with few attempts: SQL does not say whether an error was the last.
QUEUES = ["plain", "replace", "postpone", "active", "fenced"]
KEYS = 6


class Lost(Exception):
    """The connection is gone: what was sent may have happened."""


class Refused(Exception):
    """The server said no: nothing was written."""


class Database:
    """A connection that is made when it is needed."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        where, _, port = parts.netloc.rpartition("@")[2].partition(":")
        self.path = os.path.join(urllib.parse.unquote(where), ".s.PGSQL." + (port or "5432"))
        self.user = parts.username or "postgres"
        self.name = parts.path.strip("/") or "postgres"
        self.line = None
        self.rest = b""

    def connect(self):
        self.line, self.rest = socket.socket(socket.AF_UNIX), b""
        self.line.settimeout(10)
        self.line.connect(self.path)
        words = "user\0%s\0database\0%s\0application_name\0judge\0\0" % (self.user, self.name)
        self.send(struct.pack("!ii", 8 + len(words), 196608) + words.encode())
        self.answers()
        self.ask("SET statement_timeout = '3s'")

    def close(self):
        if self.line:
            self.line.close()
        self.line = None

    def send(self, data):
        try:
            self.line.sendall(data)
        except OSError as error:
            self.close()
            raise Lost(str(error))

    def message(self):
        while len(self.rest) < 5 or len(self.rest) < 1 + struct.unpack("!i", self.rest[1:5])[0]:
            try:
                data = self.line.recv(65536)
            except OSError as error:
                self.close()
                raise Lost(str(error))
            if not data:
                self.close()
                raise Lost("the server closed the connection")
            self.rest += data
        end = 1 + struct.unpack("!i", self.rest[1:5])[0]
        kind, body, self.rest = self.rest[:1], self.rest[5:end], self.rest[end:]
        return kind, body

    def answers(self):
        """Rows until the server is ready again."""
        names, rows, wrong = [], [], None
        while True:
            kind, body = self.message()
            if kind == b"T":
                names, at = [], 2
                for _ in range(struct.unpack("!h", body[:2])[0]):
                    end = body.index(b"\0", at)
                    names.append(body[at:end].decode())
                    at = end + 19
            elif kind == b"D":
                row, at = [], 2
                for _ in range(struct.unpack("!h", body[:2])[0]):
                    (size,) = struct.unpack("!i", body[at : at + 4])
                    at += 4
                    row.append(None if size < 0 else body[at : at + size].decode())
                    at += max(size, 0)
                rows.append(dict(zip(names, row)))
            elif kind == b"E":
                fields = {f[:1]: f[1:].decode() for f in body.split(b"\0") if f}
                wrong = fields.get(b"M", "an error")
                if fields.get(b"S") in ("FATAL", "PANIC"):
                    self.close()
                    raise Lost(wrong)
            elif kind == b"R" and struct.unpack("!i", body[:4])[0] != 0:
                raise SystemExit("the server asks for a password")
            elif kind == b"Z":
                if wrong:
                    raise Refused(wrong)
                return rows

    def ask(self, sql):
        if self.line is None:
            self.connect()
        data = sql.encode() + b"\0"
        self.send(b"Q" + struct.pack("!i", 4 + len(data)) + data)
        return self.answers()


def literal(value):
    if value is None:
        return "NULL"
    return "'" + str(value).replace("'", "''") + "'"


class Client:
    def __init__(self, folder, name, seed, url, hold):
        self.folder, self.name, self.hold = folder, name, hold
        self.dice = random.Random("%s %s" % (seed, name))
        self.file = os.open(os.path.join(folder, name + ".jsonl"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self.database = Database(url)
        self.n = self.made = self.transactions = 0
        self.parent = os.getppid()

    def write(self, **said):
        line = {"t": time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000, "w": time.time_ns() // 1000}
        line.update(said)
        os.write(self.file, (json.dumps(line, separators=(",", ":")) + "\n").encode())

    def call(self, call, sql, say):
        """Makes a call between its two lines. Nothing is sent before the first is
        written; a connection is made before, for that is no part of it."""
        if self.database.line is None:
            self.database.connect()
        self.n += 1
        n = self.n
        self.write(n=n, call=call)
        try:
            rows = self.database.ask(sql)
        except Lost as lost:
            self.write(n=n, answer={"error": {"unknown": True, "words": str(lost)}})
            raise
        except Refused as refused:
            self.write(n=n, answer={"error": {"unknown": False, "words": str(refused)}})
            raise
        self.write(n=n, answer=say(rows))
        return rows

    def has_to_leave(self):
        if os.getppid() != self.parent:
            return True
        names = ("leave", self.name + ".leave")
        return any(os.path.exists(os.path.join(self.folder, name)) for name in names)

    def put(self, transaction=None):
        self.made += 1
        queue = self.dice.choice(QUEUES)
        # As JSON, which is what every reader of the task sees.
        task = {"payload": json.dumps("%s/%d" % (self.name, self.made))}
        if transaction is not None or self.dice.random() < 0.5:
            task["key"] = "k%d" % self.dice.randrange(KEYS)
        if self.dice.random() < 0.2:
            task["id"] = "id-%s-%d" % (self.name, self.made)
        call = {"put": {"queue": queue, "tasks": [task]}}
        if transaction is not None:
            call["put"]["transaction"] = transaction
        sql = "SELECT outcome, id, reason FROM gristmill.enqueue(%s, %s, key => %s, caller_id => %s)" % (
            literal(queue), literal(task["payload"]), literal(task.get("key")), literal(task.get("id")))

        def say(rows):
            row = rows[0]
            if row["outcome"] == "refused":
                return {"put": [{"refused": row["reason"] or ""}]}
            return {"put": [{row["outcome"]: int(row["id"])}]}

        self.call(call, sql, say)

    def transact(self):
        """Puts in a transaction that stays open for a while."""
        self.transactions += 1
        number = self.transactions
        self.database.ask("BEGIN")
        self.write(fault={"kind": "open_transaction", "target": self.name, "phase": "begin"})
        try:
            for _ in range(self.dice.randint(1, 3)):
                self.put(number)
            time.sleep(self.dice.random() * self.hold)
            if self.dice.random() < 0.7:
                self.call({"commit": {"transaction": number}}, "COMMIT", lambda rows: "fine")
            else:
                self.call({"rollback": {"transaction": number}}, "ROLLBACK", lambda rows: "fine")
        except Refused:
            self.database.ask("ROLLBACK")
        finally:
            self.write(fault={"kind": "open_transaction", "target": self.name, "phase": "end"})

    def work(self):
        queue, most = self.dice.choice(QUEUES), self.dice.randint(1, 4)
        call = {"claim": {"queue": queue, "max": most, "token": ""}}
        sql = (
            "SELECT id, token, payload::text AS payload, encode(raw, 'escape') AS raw, key, \"group\", priority,"
            " (extract(epoch FROM run_at) * 1000000)::bigint AS run_at, attempt, claims, slot"
            " FROM gristmill.claim(%s, %d, 0.7, worker => 'python')" % (literal(queue), most)
        )

        def say(rows):
            tasks = []
            for row in rows:
                given = {"task": int(row["id"]), "payload": row["payload"] or row["raw"],
                         "run_at": int(row["run_at"]), "attempt": int(row["attempt"]),
                         "claims": int(row["claims"]), "priority": int(row["priority"])}
                for name in ("key", "group"):
                    if row[name] is not None:
                        given[name] = row[name]
                tasks.append(given)
            said = {"tasks": tasks, "lease_ms": 700}
            if rows:
                said["token"] = rows[0]["token"].replace("-", "")
            return {"claim": said}

        for row in self.call(call, sql, say):
            if self.dice.random() < 0.08:
                continue  # Forgotten: it comes back when its lease is over.
            self.settle(int(row["id"]), row["token"])

    def settle(self, task, token):
        ways = {"done": "complete(%d, %s)", "error": "error(%d, %s, 'on purpose')",
                "retry": "retry(%d, %s, '0')", "fail": "fail(%d, %s, 'on purpose')",
                "release": "release(%d, %s, started => false)"}
        how = self.dice.choices(list(ways), [20, 2, 1, 1, 1])[0]
        ending = {"task": task, "token": token.replace("-", ""), "how": how}
        went = {"done": "done", "fail": "failed"}.get(how, "pending")

        def say(rows):
            word = rows[0]["said"]
            if word != "recorded":
                return {"settle": [word]}
            return {"settle": [{"recorded": {"went": went}}]}

        sql = "SELECT gristmill.%s AS said" % (ways[how] % (task, literal(token)))
        self.call({"settle": {"endings": [ending]}}, sql, say)

    def run(self):
        while not self.has_to_leave():
            try:
                dice = self.dice.random()
                if self.hold > 0 or dice < 0.15:
                    self.transact()
                elif dice < 0.5:
                    self.put()
                else:
                    self.work()
                time.sleep(self.dice.random() * 0.01)
            except (Lost, Refused, OSError):
                self.database.close()
                time.sleep(0.02)


if __name__ == "__main__":
    folder, name, seed, hold = sys.argv[1:5]
    with open(os.path.join(folder, name + ".pid"), "w") as file:
        file.write(str(os.getpid()))
    Client(folder, name, seed, os.environ["GRISTMILL_JUDGE_STORE"], float(hold)).run()

"""Producers and workers over HTTP while their service is killed again and again.

Called with the program, the number of kills, and a folder. Everything that was answered
is written down; at the end the store is drained and compared with it.
"""

import os
import random
import subprocess
import sys
import threading
import time

program, kills, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
sys.path.insert(0, sys.argv[4])

from gristmill import Client, GristmillError, Settlement  # noqa: E402

PRODUCERS, WORKERS, QUEUE = 8, 4, "work"
lock = threading.Lock()
put, asked, ran, recorded, again = set(), set(), {}, set(), []
stop = threading.Event()


def serve(address):
    environment = dict(os.environ, GRISTMILL_LISTEN=address)
    service = subprocess.Popen(
        [program, "serve"], stdout=subprocess.PIPE, env=environment, text=True, cwd=folder
    )
    for line in service.stdout:
        if line.startswith("  http "):
            address = line.split("http://")[1].split(" ")[0]
        if line.startswith("Stop with"):
            return service, address
    raise SystemExit("the service did not start")


def produce(number):
    client, n = Client(url, timeout=5, patience=60), 0
    while not stop.is_set():
        n += 1
        names = [f"{number}-{n}-{part}" for part in range(random.choice((1, 1, 20)))]
        with lock:
            asked.update(names)
        try:
            answers = list(client.put_many(QUEUE, names))
        except GristmillError:
            continue
        with lock:
            put.update(name for name, a in zip(names, answers) if a.outcome != "refused")


def work(number):
    client = Client(url, timeout=5, patience=60)
    while not (stop.is_set() and drained()):
        try:
            claim = client.claim([QUEUE], max=20, lease="2s", wait=0.5, worker=f"w{number}")
        except GristmillError:
            continue
        with lock:
            for task in claim.tasks:
                ran[task.payload] = ran.get(task.payload, 0) + 1
                if task.payload in recorded:
                    again.append(task.payload)
        try:
            answers = client.settle([Settlement(t.id, claim.token, "done") for t in claim.tasks])
        except GristmillError:
            continue
        with lock:
            for task, answer in zip(claim.tasks, answers):
                if answer.outcome == "recorded":
                    recorded.add(task.payload)


def drained():
    try:
        return Client(url).stats()[0]["total"] == 0
    except GristmillError:
        return False


service, address = serve("127.0.0.1:0")
url = f"http://{address}"
Client(url).declare(QUEUE, max_attempts="unlimited", backoff={"base": "1ms", "cap": "10ms"})
threads = [threading.Thread(target=produce, args=(n,)) for n in range(PRODUCERS)]
threads += [threading.Thread(target=work, args=(n,)) for n in range(WORKERS)]
for thread in threads:
    thread.start()
for _ in range(kills):
    time.sleep(random.uniform(0.2, 0.8))
    service.kill()
    service.wait()
    service, address = serve(address)
stop.set()
for thread in threads:
    thread.join(120)
    assert not thread.is_alive(), "a client hangs"
service.terminate()
service.wait()
lost, foreign = put - set(ran), set(ran) - asked
print(f"{len(put)} put, {len(ran)} ran, {len(recorded)} recorded, {sum(ran.values())} runs")
assert not lost, f"{len(lost)} acknowledged puts never ran: {sorted(lost)[:5]}"
assert not again, f"ran after their settlement was acknowledged: {again[:5]}"
assert not foreign, foreign
twice = [name for name, runs in ran.items() if runs > kills + 1]
assert not twice, twice

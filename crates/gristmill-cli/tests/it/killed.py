"""Producers and workers over HTTP while their service is killed again and again.

Called with the program, the number of kills, a folder, where the Python client is, and,
where there is one, a worker in TypeScript. Everything that was answered is written down;
at the end the store is drained and compared with it. The workers are threads of this
program, a worker of gristmill's own that knows the service by its address alone
(`--store http://`), and the one in TypeScript: those write down what they run.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

program, kills, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
typescript = sys.argv[5] if len(sys.argv) > 5 else None
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


def elsewhere():
    """Workers that are programs of their own: what each wrote down, and the program."""
    rust, environment = os.path.join(folder, "rust"), dict(os.environ, GRISTMILL_URL=url)
    os.mkdir(rust)
    note = "line=$(cat); printf '%s\\n' \"$line\" >> ran"
    words = ["--store", url, "work", QUEUE, "--exec", note, "--lease", "2s", "--processors", "2"]
    started = {"rust": (rust, [program, *words])}
    if typescript:
        started["typescript"] = (os.path.dirname(typescript), ["node", typescript])
    return {
        name: (os.path.join(there, "ran"), subprocess.Popen(
            words, cwd=there, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ))
        for name, (there, words) in started.items()
    }


service, address = serve("127.0.0.1:0")
url = f"http://{address}"
Client(url).declare(QUEUE, max_attempts="unlimited", backoff={"base": "1ms", "cap": "10ms"})
others = elsewhere()
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
counts = {"python": sum(ran.values())}
for name, (file, worker) in others.items():
    assert worker.poll() is None, f"the worker in {name} has ended by itself"
    worker.send_signal(signal.SIGTERM)
    worker.wait(60)
    with open(file) as lines:
        runs = [json.loads(line) for line in lines]
    counts[name] = len(runs)
    for payload in runs:
        ran[payload] = ran.get(payload, 0) + 1
service.terminate()
service.wait()
print(counts)
assert all(counts.values()), counts
lost, foreign = put - set(ran), set(ran) - asked
print(f"{len(put)} put, {len(ran)} ran, {len(recorded)} recorded, {sum(ran.values())} runs")
assert not lost, f"{len(lost)} acknowledged puts never ran: {sorted(lost)[:5]}"
assert not again, f"ran after their settlement was acknowledged: {again[:5]}"
assert not foreign, foreign
twice = [name for name, runs in ran.items() if runs > kills + 1]
assert not twice, twice

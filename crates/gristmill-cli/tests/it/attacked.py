"""A service under bad clients: its memory, and what honest ones notice.

Called with the service's port and process id. Nothing is printed but what was measured.
"""

import http.client
import json
import socket
import sys
import threading
import time

port, pid = int(sys.argv[1]), int(sys.argv[2])
HEAD = b"POST /v1/queues/emails/tasks HTTP/1.1\r\nhost: localhost\r\n"


def memory():
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) >> 10


def put(stop, times):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    while not stop.is_set():
        began = time.monotonic()
        body = json.dumps({"payload": 1})
        connection.request(
            "POST", "/v1/queues/emails/tasks", body, {"content-type": "application/json"}
        )
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 201, answer.status
        times.append(time.monotonic() - began)
        time.sleep(0.01)


def p99(seconds):
    stop, times = threading.Event(), []
    threads = [threading.Thread(target=put, args=(stop, times)) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    return sorted(times)[int(len(times) * 0.99)]


def connect():
    return socket.create_connection(("127.0.0.1", port))


def send_until_cut(head, part, most):
    with connect() as bad:
        bad.settimeout(60)
        sent = 0
        try:
            bad.sendall(head)
            while sent < most:
                sent += bad.send(part)
        except OSError:
            return sent
    raise AssertionError(f"{most} bytes were taken")


before, calm = memory(), p99(4)
silent = [connect() for _ in range(2000)]
dribbling = [connect() for _ in range(2000)]
for bad in dribbling:
    bad.send(b"GET /v1 HTTP/1.1\r\nho")


def dribble():
    for _ in range(14):
        for bad in dribbling:
            try:
                bad.send(b"x")
            except OSError:
                pass
        time.sleep(1)


dribbler = threading.Thread(target=dribble)
dribbler.start()
pressed, during = p99(8), memory()
dribbler.join()
for bad in silent + dribbling:
    # Each was closed in its time: nothing is waited for.
    bad.settimeout(5)
    try:
        while bad.recv(65536):
            pass
    except ConnectionError:
        pass
    bad.close()
print(f"memory {before} -> {during} MB, p99 {calm * 1000:.1f} -> {pressed * 1000:.1f} ms")
json_head = HEAD + b"content-type: application/json\r\ncontent-length: 1073741824\r\n\r\n"
print("1 GB body cut after", send_until_cut(json_head, b" " * 65536, 1 << 30) >> 20, "MB")
text_head = HEAD.replace(b"queues/emails/tasks", b"settlements")
text_head += b"content-type: application/json\r\ncontent-length: 104857600\r\n\r\n"
text_head += b'[{"id":"1","token":"00","outcome":"error","error":"'
print("100 MB error cut after", send_until_cut(text_head, b"x" * 65536, 100 << 20) >> 20, "MB")
lines = b'{"payload":1}\n' * 4000
lines = b"%x\r\n" % len(lines) + lines + b"\r\n"
stream = HEAD + b"content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n"
print("a stream that nobody reads cut after", send_until_cut(stream, lines, 1 << 32) >> 20, "MB")
after = memory()
print(f"memory {after} MB")
assert max(during, after) - before <= 64, (before, during, after)
# On a machine that is busy with other tests a few milliseconds are nobody's doing.
assert pressed <= 3 * max(calm, 0.02), (calm, pressed)

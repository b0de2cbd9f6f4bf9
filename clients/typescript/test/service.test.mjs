// The client against a real service, whose address is in GRISTMILL_URL.
//
// Run by `cargo test` of this repository, or by hand in this folder:
// npm ci && GRISTMILL_URL=http://127.0.0.1:4747 npm test

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { once } from "node:events";
import { beforeEach, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import {
  Client,
  Fail,
  GristmillError,
  Refused,
  Release,
  Retry,
  Unavailable,
  Unknown,
  Worker,
  contract,
} from "../dist/index.js";

const quiet = { log: () => {} };

async function until(what, holds) {
  const end = performance.now() + 30_000;
  while (!(await holds())) {
    assert(performance.now() < end, `${what} never came true`);
    await sleep(10);
  }
}

async function all(answers) {
  const found = [];
  for await (const answer of answers) found.push(answer);
  return found;
}

let client, queue;

beforeEach(async () => {
  client = new Client();
  queue = `q-${randomUUID().slice(0, 13)}`;
  const backoff = { base: "1ms", jitter: false };
  await client.declare(queue, { max_attempts: 3, backoff });
});

async function stats() {
  return (await client.stats()).find((one) => one.queue === queue);
}

/** Lets a worker run until this holds, and sees that it stops at once. */
async function runUntil(worker, holds) {
  const running = worker.run({ signals: false });
  try {
    await until("the work", holds);
  } finally {
    const began = performance.now();
    worker.stop();
    await running;
    assert(performance.now() - began < 5000, "who waits for work holds up no stop");
  }
}

describe("putting", () => {
  it("puts, claims, extends and settles", async () => {
    const first = await client.put(queue, { to: "ada" }, { key: "ada", headers: { a: "b" } });
    assert.equal(first.outcome, "enqueued");
    assert.equal((await client.put(queue, 1, { key: "ada" })).outcome, "duplicate");
    assert.equal((await client.find(queue, ["ada"]))[0].place, "waiting");
    const claim = await client.claim([queue], { max: 5, lease: "5s", worker: "w" });
    assert.deepEqual([claim.queue, claim.leaseMs], [queue, 5000]);
    const [task] = claim.tasks;
    assert.deepEqual([task.payload, task.key, task.attempt], [{ to: "ada" }, "ada", 1]);
    assert.deepEqual(task.headers, { a: "b" });
    assert.equal((await client.extend(queue, claim.token, 9000)).outcome, "extended");
    const settlement = { id: task.id, token: claim.token, outcome: "done" };
    const [answer] = await client.settle([settlement]);
    assert.deepEqual([answer.outcome, answer.became], ["recorded", "done"]);
    // Said twice because an answer was lost, it is no harm.
    assert.equal((await client.settle([settlement]))[0].outcome, "gone");
    assert.equal((await client.claim([queue])).tasks.length, 0);
    assert.deepEqual(await client.settle([]), []);
  });

  it("keeps bytes, and whole numbers that are too large for a number", async () => {
    await client.put(queue, Uint8Array.of(255, 0));
    assert.deepEqual((await client.claim([queue])).tasks[0].payload, Uint8Array.of(255, 0));
    const text = 'a "quoted" 12345678901234567890 \\ \u2028';
    const payload = {
      small: -(2 ** 53) + 1,
      large: 2n ** 62n,
      deep: [-9007199254740993n, 1.1234567890123456, 1e300, text, { [text]: null }],
    };
    await client.put(queue, payload);
    const [task] = (await client.claim([queue])).tasks;
    assert.deepEqual(task.payload, payload);
  });

  it("puts many, and an operator moves them", async () => {
    const puts = Array.from({ length: 2500 }, (_, n) => ({ payload: n, key: String(n % 2000) }));
    const outcomes = (await all(client.putMany(queue, puts))).map((answer) => answer.outcome);
    assert.equal(outcomes.filter((outcome) => outcome === "enqueued").length, 2000);
    assert.equal(outcomes.filter((outcome) => outcome === "duplicate").length, 500);
    assert.equal((await stats()).ready, 2000);
    assert.equal((await all(client.tasks({ queue, state: "ready" }))).length, 2000);
    assert.equal(await client.operate("cancel", { filter: { queue }, by: "test" }), 2000);
    async function* stream() {
      yield { payload: 1 };
      yield { payload: 2 };
    }
    assert.equal((await all(client.putMany(queue, stream(), { flush: 1 }))).length, 2);
  });

  it("says why a task is refused", async () => {
    const refused = (put, wanted) =>
      assert.rejects(put, (error) => {
        assert(error instanceof Refused, `${error}`);
        for (const [name, value] of Object.entries(wanted)) assert.equal(error[name], value);
        return true;
      });
    await refused(client.put("no-such-queue", 1), { code: "unknown_queue", status: 404 });
    await refused(client.put(queue, 1, { delay: "5" }), { field: "delay" });
    const twins = [{ payload: 1, key: "x" }, { payload: 2, key: "x" }];
    await refused(all(client.putMany(queue, twins, { atomic: true })), { code: "undone" });
    await assert.rejects(client.put(queue, NaN), GristmillError);
    await assert.rejects(client.put(queue, undefined), GristmillError);
    await assert.rejects(client.put(queue, 1, { delay: -1 }), GristmillError);
    assert.equal((await stats()).total, 0);
  });

  it("says what holds for one task alone", async () => {
    const answer = await client.put(queue, 1, {
      delay: 60_000,
      timeout: 5000,
      maxAttempts: "unlimited",
      backoff: { base: 1000, jitter: false },
      priority: -3,
      group: "g",
      source: "s",
    });
    const task = await client.task(answer.id);
    assert.deepEqual([task.priority, task.group, task.source], [-3, "g", "s"]);
    assert.deepEqual([task.timeout, task.max_attempts], ["5s", "unlimited"]);
    const at = new Date(Date.now() + 3_600_000);
    const later = await client.task((await client.put(queue, 2, { runAt: at })).id);
    assert.equal(new Date(later.run_at).getTime(), at.getTime());
  });

  it("says that a service is away", async () => {
    const server = createServer();
    await once(server.listen(0, "127.0.0.1"), "listening");
    const url = `http://127.0.0.1:${server.address().port}`;
    await once(server.close(), "close");
    await assert.rejects(new Client(url, { patience: 100 }).stats(), Unavailable);
    assert.throws(() => new Client("ftp://example.org"), GristmillError);
    assert.throws(() => new Client("example"), GristmillError);
  });

  it("repeats what was not answered, and says who asks", async () => {
    const seen = [];
    const server = createServer((request, response) => {
      let body = "";
      request.on("data", (bytes) => (body += bytes));
      request.on("end", () => {
        seen.push({ body, who: request.headers.authorization });
        if (seen.length === 1) return request.socket.destroy();
        if (seen.length === 2) return response.writeHead(503).end("<html>away</html>");
        response.end('{"outcome":"enqueued","id":"7"}');
      });
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    try {
      const url = `http://127.0.0.1:${server.address().port}/`;
      const away = new Client(url, { token: "t0ken" });
      assert.equal((await away.put("q", 1)).id, "7");
      assert.deepEqual(seen.map(({ who }) => who), Array(3).fill("Bearer t0ken"));
      assert.equal(new Set(seen.map(({ body }) => JSON.parse(body).id)).size, 1, "one id");
      seen.length = 0;
      const unknown = away.call("POST", "/x", {}, { repeatable: false });
      await assert.rejects(unknown, Unknown);
      assert.equal(seen.length, 1);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });

  it("gives up on an answer that does not come", async () => {
    const server = createServer(() => {});
    await once(server.listen(0, "127.0.0.1"), "listening");
    try {
      const url = `http://127.0.0.1:${server.address().port}`;
      await assert.rejects(new Client(url, { timeout: 50, patience: 0 }).stats(), Unknown);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });

  it("gives results to who waits", async () => {
    const worker = new Worker(client, quiet).task(queue, (task) => {
      if (task.payload === "fail") throw new Fail("no such thing");
      if (task.payload !== null) task.result({ twice: task.payload * 2 });
    });
    const got = [];
    const asking = (async () => {
      for (const payload of [21, null, "fail"]) got.push(await client.putAndWait(queue, payload));
      const { id } = await client.put(queue, 4, { wanted: true });
      got.push(await client.result(id, { wait: 30_000 }), await client.result(id));
    })();
    await runUntil(worker, async () => got.length === 5);
    await asking;
    const eight = { state: "done", value: { twice: 8 } };
    assert.deepEqual(got, [
      { state: "done", value: { twice: 42 } },
      { state: "done" },
      { state: "failed", error: "no such thing" },
      eight,
      eight,
    ]);
    const { id } = await client.put(queue, 1, { wanted: true });
    assert.deepEqual(await client.result(id), { state: "open" });
    assert.deepEqual(await client.putAndWait(queue, 2, { wait: 0 }), { state: "open" });
    await client.operate("cancel", { ids: [id] });
    assert.deepEqual(await client.result(id), { state: "cancelled" });
    assert.deepEqual(await client.result("999999999"), { state: "not_known" });
  });

  it("waits for the end of a task", async () => {
    const { id } = await client.put(queue, 1);
    const { token } = await client.claim([queue]);
    const ended = client.task(id, { wait: 20_000 });
    await client.settle([{ id, token, outcome: "done" }]);
    assert.equal((await ended).state, "gone");
  });
});

describe("working", () => {
  it("runs a handler for each task", async () => {
    const worker = new Worker(client, { processors: 2, ...quiet });
    const seen = [];
    worker.task(queue, async (task) => seen.push(task.payload));
    await all(client.putMany(queue, Array.from({ length: 50 }, (_, n) => ({ payload: n }))));
    await runUntil(worker, async () => (await stats()).counters.done === 50);
    assert.deepEqual(seen.sort((a, b) => a - b), Array.from({ length: 50 }, (_, n) => n));
    assert.equal(worker.counts.done, 50);
  });

  it("does what a handler throws", async () => {
    const next = `${queue}-next`;
    await client.declare(next);
    const runs = [];
    const worker = new Worker(client, quiet).task(queue, async (task) => {
      const what = task.payload;
      runs.push([what, task.attempt]);
      if (what === "fail") throw new Fail("never");
      if (what === "error") throw new TypeError("boom", { cause: new Error("below") });
      if (what === "retry" && task.attempt < 2) throw new Retry(1, "not yet");
      if (what === "release" && runs.filter(([one]) => one === what).length < 2) throw new Release();
      if (what === "follow") task.followUp(next, { from: task.id }, { key: "k" });
    });
    for (const payload of ["fail", "error", "retry", "release", "follow"]) {
      await client.put(queue, payload);
    }
    await runUntil(worker, async () => {
      const { failed, total } = await stats();
      return failed === 2 && total === 2;
    });
    const failed = new Map((await all(client.tasks({ queue }))).map((task) => [task.payload, task]));
    assert.equal(failed.get("fail").error, "never");
    assert.match(failed.get("error").error, /TypeError: boom[^]*caused by Error: below/);
    const of = (what) => runs.filter(([one]) => one === what);
    assert.equal(of("error").length, 3);
    assert.deepEqual(of("retry"), [["retry", 1], ["retry", 2]]);
    assert.deepEqual(of("release"), [["release", 1], ["release", 1]]);
    assert.equal((await client.claim([next])).tasks[0].key, "k");
  });

  it("settles a batch one by one", async () => {
    const sizes = [];
    const worker = new Worker(client, quiet).batch(queue, 10, (tasks) => {
      sizes.push(tasks.length);
      for (const task of tasks) if (task.payload === 3) task.fail("odd one");
    });
    await all(client.putMany(queue, Array.from({ length: 10 }, (_, n) => ({ payload: n }))));
    await runUntil(worker, async () => (await stats()).counters.done === 9);
    assert.equal(Math.max(...sizes), 10);
    assert.equal((await stats()).failed, 1);
  });

  it("keeps a lease beyond its length", async () => {
    const ended = [];
    const worker = new Worker(client, { lease: "400ms", ...quiet }).task(queue, async (task) => {
      await sleep(1500);
      ended.push([task.attempt, task.lost, task.signal.aborted]);
    });
    await client.put(queue, 1);
    await runUntil(worker, async () => (await stats()).counters.done === 1);
    assert.deepEqual(ended, [[1, false, false]]);
  });

  it("tells a task that it was cancelled", async () => {
    let heard = false;
    const worker = new Worker(client, { lease: "400ms", ...quiet }).task(queue, async (task) => {
      const told = new Promise((resolve) => task.signal.addEventListener("abort", resolve));
      await client.operate("cancel", { ids: [task.id], by: "test" });
      await told;
      heard = true;
    });
    await client.put(queue, 1);
    await runUntil(worker, async () => (await stats()).counters.cancelled === 1);
    assert(heard);
  });

  it("knows a lease that it lost by itself", async () => {
    const lines = [];
    const log = (line) => lines.push(line);
    const worker = new Worker(client, { lease: "400ms", log }).task(queue, (task) => {
      if (task.attempt > 1) return;
      // Nothing is extended while this computes.
      const end = performance.now() + 2000;
      while (performance.now() < end);
      assert(task.lost);
    });
    await client.put(queue, 1);
    await runUntil(worker, async () => (await stats()).total === 0);
    assert(lines.some((line) => line.includes("lost its lease")), lines.join("\n"));
  });

  it("takes one handler a queue, and at least one", async () => {
    const worker = new Worker(client, quiet).task(queue, () => {});
    assert.throws(() => worker.task(queue, () => {}), GristmillError);
    await assert.rejects(new Worker(client).run(), GristmillError);
    assert.throws(() => new Worker(client, { processors: 0 }), GristmillError);
  });

  it("gives back what does not end, and says nothing else of it", async () => {
    const said = [];
    class Heard extends Client {
      async settle(settlements) {
        said.push(...settlements.map(({ outcome }) => outcome));
        return super.settle(settlements);
      }
    }
    const worker = new Worker(new Heard(), { stopWithin: 50, ...quiet });
    let began;
    const beginning = new Promise((resolve) => (began = resolve));
    worker.task(queue, (task) => {
      began();
      return new Promise((resolve) => task.signal.addEventListener("abort", resolve));
    });
    await client.put(queue, 1);
    const running = worker.run({ signals: false });
    await beginning;
    worker.stop();
    await running;
    await until("it is back", async () => (await stats()).ready === 1);
    assert.deepEqual(said, ["release"], "its handler ended because the worker did");
    assert.equal((await client.claim([queue])).tasks[0].attempt, 1, "it cost no attempt");
  });

  it("stops at a signal", async () => {
    const program = `
      import { Worker } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)};
      const worker = new Worker(undefined, { batch: 5 });
      worker.task(${JSON.stringify(queue)}, async () => {
        console.log("began");
        await new Promise((resolve) => setTimeout(resolve, 500));
      });
      await worker.run();
      console.log("ended", worker.counts.done);`;
    await all(client.putMany(queue, Array.from({ length: 5 }, (_, n) => ({ payload: n }))));
    const child = spawn(process.execPath, ["--input-type=module", "--eval", program]);
    let said = "";
    child.stdout.on("data", (bytes) => (said += bytes));
    await until("its beginning", () => said.includes("began"));
    child.kill("SIGTERM");
    assert.deepEqual(await once(child, "close"), [0, null]);
    assert.match(said, /ended 1/);
    // What was claimed and not begun is back at once, and cost no attempt.
    const { ready, processing } = await stats();
    assert.deepEqual([ready, processing], [4, 0]);
    assert.equal((await client.claim([queue])).tasks[0].attempt, 1);
  });
});

describe("a contract's fields", () => {
  const kinds = {
    text: contract.string,
    whole: contract.int,
    large: contract.int64,
    fraction: contract.float64,
    bytes: contract.bytes,
    at: contract.timestamp,
    is: contract.bool,
    many: contract.list(contract.int64),
    maybe: contract.optional(contract.list(contract.string)),
  };
  const here = contract.queue("here", kinds);
  const task = {
    text: "a",
    whole: -1,
    large: 2n ** 63n - 1n,
    fraction: -Infinity,
    bytes: Uint8Array.of(1, 2),
    at: new Date("2026-01-02T03:04:05.006Z"),
    is: false,
    many: [1n, -(2n ** 63n)],
  };

  it("come back as they were", () => {
    assert.deepEqual(here.read(here.payload(task)), task);
    assert.deepEqual(here.read({ ...here.payload(task), large: 5, more: 1 }).large, 5n);
    const maybe = ["x"];
    assert.deepEqual(here.read(here.payload({ ...task, maybe })).maybe, maybe);
  });

  it("are refused by name where they do not fit", () => {
    for (const [name, value] of [
      ["text", 1],
      ["whole", 1.5],
      ["whole", 2n ** 60n],
      ["large", 2n ** 63n],
      ["large", "1"],
      ["fraction", "1"],
      ["bytes", "*"],
      ["at", "2026-01-02T03:04:05"],
      ["at", "yesterday"],
      ["is", 0],
      ["many", 1n],
      ["many", ["1"]],
      ["maybe", [1]],
      ["text", null],
    ]) {
      const payload = { ...here.payload(task), [name]: value };
      assert.throws(() => here.read(payload), new RegExp(`'${name}' of here`), `${name} ${value}`);
    }
    assert.throws(() => here.payload({ ...task, at: new Date(NaN) }), /'at' of here/);
    assert.throws(() => here.payload({ ...task, large: 2n ** 63n }), /'large' of here/);
    assert.throws(() => here.read(1), contract.Misfit);
  });
});

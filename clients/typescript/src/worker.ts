// The worker: claims, runs handlers, keeps their leases alive, settles, stops.
//
// Each processor has one batch at a time. Leases are extended beside them; one that could
// not be extended in its time counts as lost, whatever the service says later. A handler
// that computes without awaiting anything holds all of that up: give such work a thread
// of its own (`worker_threads`), or a lease that is longer than it takes.

import { Client, randomHex } from "./client.js";
import { Fail, GristmillError, Release, Retry, type Duration } from "./errors.js";
import type { Claim, ClaimedTask, FollowUp, PutOptions, Settlement } from "./model.js";
import { sleep } from "./transport.js";

const ERROR_LETTERS = 4000;
const WAIT = 20_000;

/** How far a task is, as it is sent. */
interface TaskProgress {
  readonly id: string;
  readonly done: number;
  readonly total: number | undefined;
  readonly message: string;
}

/** What is left out of a settlement that a task says of itself. */
type Said = Omit<Settlement, "id" | "token">;

/** A task in a handler's hands. */
export class Task<T = unknown> {
  readonly #lease: Lease;
  readonly #ended = new AbortController();
  #followUps: FollowUp[] = [];
  #result: unknown;
  /** @internal */
  said: TaskProgress | undefined;
  /** @internal */
  outcome: Settlement | undefined;
  /** @internal */
  isCancelled = false;
  /** @internal */
  isLost = false;
  /**
   * Somebody settles it: who gives it back at a stop, or who ran it, not both. A handler
   * that ends because the worker does has not done its task.
   * @internal
   */
  isTaken = false;

  /** @internal */
  constructor(
    readonly claimed: ClaimedTask<T>,
    lease: Lease,
  ) {
    this.#lease = lease;
  }

  get id(): string {
    return this.claimed.id;
  }
  get queue(): string {
    return this.claimed.queue;
  }
  get payload(): T {
    return this.claimed.payload;
  }
  get key(): string | undefined {
    return this.claimed.key;
  }
  get attempt(): number {
    return this.claimed.attempt;
  }
  get headers(): Readonly<Record<string, string>> {
    return this.claimed.headers;
  }

  /**
   * Aborted when the task should stop: an operator cancelled it, its lease is lost, or the
   * worker gives up on it. Hand it to `fetch` and the like.
   */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** Whether the task belongs to somebody else by now: nothing it does counts. */
  get lost(): boolean {
    return this.isLost || this.#lease.isOver();
  }

  /** Puts a task together with this one's `done`: both or neither. */
  followUp(queue: string, payload: unknown, options: PutOptions = {}): void {
    this.#followUps.push({ queue, payload, ...options });
  }

  /**
   * Returns a value, with `done`, for whoever waits for the task: anything that has a form
   * in JSON, up to 64 KiB.
   */
  result(value: unknown): void {
    this.#result = value;
  }

  /**
   * Says how far it is, for whoever looks: the last word goes along with the next
   * heartbeat, at most once a second, so this may be called for every row.
   */
  progress(done: number, total?: number, message = ""): void {
    this.said = {
      id: this.id,
      done: whole(done),
      total: total === undefined ? undefined : whole(total),
      message: String(message).slice(0, 1000),
    };
  }

  /** It succeeded. What a handler of batches says of one task itself stands. */
  done(): void {
    this.settle({ outcome: "done", followUps: this.#followUps, result: this.#result });
  }
  /** It went wrong: the queue decides between another run and failed. */
  error(error: string): void {
    this.settle({ outcome: "error", error: cut(error) });
  }
  /** Run it again after this time. */
  retry(after: Duration, reason?: string): void {
    this.settle({ outcome: "retry", after, error: reason });
  }
  /** It can never succeed. */
  fail(error: string): void {
    this.settle({ outcome: "fail", error: cut(error) });
  }
  /** Give it back; the attempt does not count. */
  release(after?: Duration): void {
    this.settle({ outcome: "release", after });
  }

  /** @internal */
  settle(said: Said): void {
    this.outcome = { id: this.id, token: this.#lease.token, ...said };
  }
  /** @internal */
  end(why: string): void {
    this.#ended.abort(new GristmillError(why));
  }
}

/** Handles one task: it returns and the task is done, it throws and it is not. */
export type Handler<T = any> = (task: Task<T>) => unknown;
/** Handles several tasks at once. */
export type BatchHandler<T = any> = (tasks: readonly Task<T>[]) => unknown;

interface Served {
  readonly size: number;
  /** Runs what a claim brought, one by one or together. */
  readonly run: (tasks: readonly Task[], stops: () => boolean) => AsyncIterable<readonly Task[]>;
}

/** The lease of one claim, as this process sees it. */
class Lease {
  tasks: Task[] = [];
  lost = false;

  constructor(
    readonly token: string,
    readonly queue: string,
    readonly length: number,
    /** When it was asked for or last extended: it ends no earlier than this much later. */
    public asked: number,
  ) {}

  /** How far its tasks are, where nobody was told yet. */
  takeNews(): TaskProgress[] {
    const news = this.tasks.flatMap((task) => (task.said === undefined ? [] : [task.said]));
    for (const task of this.tasks) task.said = undefined;
    return news;
  }

  hasNews(): boolean {
    return this.tasks.some((task) => task.said !== undefined);
  }

  isOver(): boolean {
    return this.lost || performance.now() > this.asked + this.length;
  }
}

/** What a worker is made with. */
export interface WorkerOptions {
  /** How many handlers run side by side. */
  readonly processors?: number;
  /** How many tasks a claim takes at most, for handlers of single tasks. */
  readonly batch?: number;
  /** How long a claim lasts unless extended. */
  readonly lease?: Duration;
  /** Only tasks of this producer. */
  readonly source?: string;
  /** How long what runs may go on after a stop, in milliseconds. */
  readonly stopWithin?: number;
  readonly name?: string;
  /** Where lines go about what went wrong; to the console unless given. */
  readonly log?: (line: string) => void;
}

/** Runs handlers for queues. */
export class Worker {
  readonly client: Client;
  readonly id: string;
  /** How many tasks ended how. */
  readonly counts = { done: 0, failed: 0, other: 0 };
  readonly #options: WorkerOptions;
  readonly #served = new Map<string, Served>();
  readonly #leases = new Set<Lease>();
  readonly #stopping = new AbortController();
  readonly #log: (line: string) => void;
  #turn = 0;
  #tells = 0;

  constructor(client?: Client, options: WorkerOptions = {}) {
    this.client = client ?? new Client();
    this.#options = options;
    this.#log = options.log ?? ((line) => console.warn(`gristmill: ${line}`));
    this.id = options.name ?? `ts-${randomHex().slice(0, 12)}`;
    for (const [name, value] of [["processors", options.processors], ["batch", options.batch]]) {
      if (value !== undefined && !(Number.isInteger(value) && Number(value) > 0)) {
        throw new GristmillError(`${name} is ${value}: it is a number of at least 1`);
      }
    }
  }

  /**
   * The handler of a queue. It returns: done. It throws: an error, unless it is `Retry`,
   * `Fail` or `Release`.
   */
  task<T = any>(queue: string, handler: Handler<T>): this {
    const log = this.#log;
    return this.#serve(queue, {
      size: this.#options.batch ?? 1,
      async *run(tasks, stops) {
        for (const task of tasks) {
          if (stops()) task.settle({ outcome: "release", started: false });
          else if (!task.signal.aborted) await attempt(() => handler(task as Task<T>), [task], log);
          yield [task];
        }
      },
    });
  }

  /** The handler of a queue that takes up to so many tasks at once. */
  batch<T = any>(queue: string, size: number, handler: BatchHandler<T>): this {
    if (!(Number.isInteger(size) && size > 0)) {
      throw new GristmillError(`a batch of ${size}: it is a number of at least 1`);
    }
    const log = this.#log;
    return this.#serve(queue, {
      size,
      async *run(tasks) {
        await attempt(() => handler(tasks as readonly Task<T>[]), tasks, log);
        yield tasks;
      },
    });
  }

  #serve(queue: string, served: Served): this {
    if (this.#served.has(queue)) throw new GristmillError(`queue '${queue}' has a handler already`);
    this.#served.set(queue, served);
    return this;
  }

  // ---- running ---------------------------------------------------------------

  /**
   * Works until `stop()` is called, or SIGTERM or Ctrl-C comes: then no more is claimed,
   * what runs may finish, and the rest is given back. A second signal ends the program.
   */
  async run({ signals = true }: { signals?: boolean } = {}): Promise<void> {
    if (this.#served.size === 0) {
      throw new GristmillError("no queue has a handler: use worker.task(queue, handler)");
    }
    const deaf = signals ? hearSignals(() => this.stop()) : () => {};
    const beats = new AbortController();
    const beating = this.#beat(beats.signal);
    const count = this.#options.processors ?? 1;
    const processors = Promise.all(Array.from({ length: count }, () => this.#process()));
    try {
      await Promise.race([processors, this.#patience()]);
      await this.#giveBack();
    } finally {
      beats.abort();
      await beating;
      deaf();
    }
  }

  /** Asks for the end. `run` returns when what runs has finished. */
  stop(): void {
    // Whoever waits for work hears it by the end of its request; a task that was on its
    // way is given back by the service.
    this.#stopping.abort();
  }

  get #stops(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Returns when a stop has waited long enough for what runs. */
  async #patience(): Promise<void> {
    await new Promise<void>((resolve) => {
      if (this.#stops) return resolve();
      this.#stopping.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    // It must not keep the program alive when everything has ended.
    await new Promise<void>((resolve) => {
      const timer: unknown = setTimeout(resolve, this.#options.stopWithin ?? 30_000);
      (timer as { unref?: () => void }).unref?.();
    });
  }

  async #giveBack(): Promise<void> {
    const left = [...this.#leases].flatMap((lease) => taken(lease.tasks).map((task) => ({ lease, task })));
    for (const { task } of left) task.end("the worker stops");
    if (left.length === 0) return;
    this.#log(`${left.length} tasks still run and are given back`);
    await this.#settle(
      left.map(({ lease, task }) => ({ id: task.id, token: lease.token, outcome: "release" })),
    );
  }

  async #process(): Promise<void> {
    let pause = 100;
    while (!this.#stops) {
      try {
        const lease = await this.#claim();
        pause = 100;
        if (lease !== undefined) await this.#work(lease);
      } catch (error) {
        if (this.#stops) return;
        this.#log(`nothing could be claimed: ${(error as Error).message}`);
        await sleep(pause, this.#stopping.signal);
        pause = Math.min(pause * 2, 5000);
      }
    }
  }

  async #claim(): Promise<Lease | undefined> {
    const all = [...this.#served.keys()];
    const turn = this.#turn++ % all.length;
    const queues = [...all.slice(turn), ...all.slice(0, turn)];
    // One claim has one size: queues of other sizes have their turn at another time.
    const size = this.#served.get(queues[0] as string)?.size ?? 1;
    const fitting = queues.filter((queue) => this.#served.get(queue)?.size === size);
    let asked = performance.now();
    const claim: Claim = await this.client.claim(fitting, {
      max: size,
      lease: this.#options.lease,
      wait: fitting.length === all.length ? WAIT : 1000,
      worker: this.id,
      source: this.#options.source,
      signal: this.#stopping.signal,
    });
    if (claim.tasks.length === 0 || claim.queue === undefined) return undefined;
    if (performance.now() - asked > claim.leaseMs / 4) {
      // The lease began somewhere in the wait: where, is known once it is extended.
      asked = performance.now();
      const extended = await this.client.extend(claim.queue, claim.token, claim.leaseMs);
      if (extended.outcome !== "extended") return undefined;
    }
    const lease = new Lease(claim.token, claim.queue, claim.leaseMs, asked);
    lease.tasks = claim.tasks.map((task) => new Task(task, lease));
    return lease;
  }

  async #work(lease: Lease): Promise<void> {
    const served = this.#served.get(lease.queue);
    if (served === undefined) return;
    this.#leases.add(lease);
    try {
      for await (const ended of served.run([...lease.tasks], () => this.#stops)) {
        await this.#close(lease, ended);
      }
    } finally {
      this.#leases.delete(lease);
    }
  }

  async #close(lease: Lease, tasks: readonly Task[]): Promise<void> {
    const said: Settlement[] = [];
    for (const task of taken(tasks)) {
      if (task.lost) this.#log(`task ${task.id} lost its lease: what it did is done again`);
      else if (task.isCancelled) said.push({ id: task.id, token: lease.token, outcome: "cancelled" });
      else if (task.outcome !== undefined) said.push(task.outcome);
    }
    await this.#settle(said);
    lease.tasks = lease.tasks.filter((task) => !tasks.includes(task));
  }

  async #settle(said: Settlement[]): Promise<void> {
    let answers;
    try {
      answers = await this.client.settle(said);
    } catch (error) {
      const why = (error as Error).message;
      this.#log(`${said.length} tasks could not be settled, and run again: ${why}`);
      return;
    }
    for (const answer of answers) {
      const became = answer.became ?? answer.outcome;
      this.counts[became === "done" || became === "failed" ? became : "other"] += 1;
      if (answer.outcome === "lease_lost") this.#log(`task ${answer.id} had lost its lease`);
    }
  }

  // ---- the heartbeat -----------------------------------------------------------

  /** Extends leases when a quarter of them has passed. */
  async #beat(ended: AbortSignal): Promise<void> {
    // A client of its own: what it says is of no use later.
    const client = this.client.another({ timeout: 5000, patience: 0 });
    while (!ended.aborted) {
      const now = performance.now();
      const held = [...this.#leases].filter((lease) => !lease.isOver());
      const tells = now >= this.#tells;
      const due = held.filter(
        (lease) => now >= lease.asked + lease.length / 4 || (tells && lease.hasNews()),
      );
      if (due.length > 0) await this.#extend(client, due, tells, ended);
      const nearest = held.map((lease) => lease.asked + lease.length / 4 - now);
      await sleep(Math.min(250, Math.max(20, ...(nearest.length ? [Math.min(...nearest)] : [250]))), ended);
    }
  }

  async #extend(
    client: Client,
    due: readonly Lease[],
    tells: boolean,
    ended: AbortSignal,
  ): Promise<void> {
    const asked = performance.now();
    const told = due.map((lease) => (tells ? lease.takeNews() : []));
    if (told.some((news) => news.length > 0)) this.#tells = asked + 1000;
    const said = due.map(({ queue, token, length }, nth) => {
      const lease = `${Math.round(length)}ms`;
      const progress = told[nth] ?? [];
      return progress.length > 0 ? { queue, token, lease, progress } : { queue, token, lease };
    });
    let answers: { outcome: string; cancelled: string[]; lost: string[] }[];
    try {
      answers = await client.call("POST", "/v1/extensions", said, { repeatable: false });
    } catch (error) {
      this.#log(`leases could not be extended: ${(error as Error).message}`);
      // Told next time, unless there is more by then.
      due.forEach((lease, nth) => {
        for (const news of told[nth] ?? []) {
          const task = lease.tasks.find((one) => one.id === news.id);
          if (task !== undefined) task.said ??= news;
        }
      });
      await sleep(100, ended);
      return;
    }
    due.forEach((lease, nth) => {
      const answer = answers[nth];
      if (answer === undefined) return;
      if (answer.outcome === "extended") lease.asked = asked;
      else lease.lost = lease.tasks.length > 0;
      for (const task of lease.tasks) {
        if (lease.lost || answer.lost.includes(task.id)) {
          task.isLost = true;
          task.end("its lease is lost");
        }
        if (answer.cancelled.includes(task.id)) {
          task.isCancelled = true;
          task.end("it was cancelled");
        }
      }
    });
  }
}

/** Those of the tasks that nobody settles yet; from now on the caller does. */
function taken(tasks: readonly Task[]): Task[] {
  const free = tasks.filter((task) => !task.isTaken);
  for (const task of free) task.isTaken = true;
  return free;
}

/** Calls a handler. What it leaves open is settled by how it ended. */
async function attempt(
  handle: () => unknown,
  tasks: readonly Task[],
  log: (line: string) => void,
): Promise<void> {
  let settle: (task: Task) => void;
  try {
    await handle();
    settle = (task) => task.done();
  } catch (error) {
    if (error instanceof Retry) settle = (task) => task.retry(error.after, error.reason);
    else if (error instanceof Fail) settle = (task) => task.fail(error.message || "failed");
    else if (error instanceof Release) settle = (task) => task.release(error.after);
    else {
      const text = trace(error);
      log(`a handler failed: ${text.split("\n", 1)[0]}`);
      settle = (task) => task.error(text);
    }
  }
  for (const task of tasks) if (task.outcome === undefined) settle(task);
}

/** An error with its place and its causes. */
function trace(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = error.stack ?? `${error.name}: ${error.message}`;
  return error.cause === undefined ? own : `${own}\ncaused by ${trace(error.cause)}`;
}

/** A number that the service takes: what it refused would cost the lease. */
function whole(number: number): number {
  const most = Number.MAX_SAFE_INTEGER;
  return Number.isFinite(number) ? Math.min(Math.max(0, Math.trunc(number)), most) : 0;
}

/** The beginning and the end of a text that is too long. */
function cut(text: string): string {
  if (text.length <= ERROR_LETTERS) return text;
  const half = ERROR_LETTERS / 2 - 5;
  return `${text.slice(0, half)}\n[...]\n${text.slice(-half)}`;
}

/** The part of Node's `process` that signals are heard by. */
interface Signals {
  on(name: string, hear: () => void): void;
  off(name: string, hear: () => void): void;
}

/** Calls at the first signal; later ones do what they do without us. */
function hearSignals(stop: () => void): () => void {
  const { process } = globalThis as { process?: Partial<Signals> };
  if (process?.on === undefined || process.off === undefined) return () => {};
  const { on, off } = process as Signals;
  const names = ["SIGTERM", "SIGINT"];
  const deaf = () => names.forEach((name) => off.call(process, name, hear));
  const hear = () => {
    deaf();
    stop();
  };
  names.forEach((name) => on.call(process, name, hear));
  return deaf;
}

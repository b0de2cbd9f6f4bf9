// The client: what a program says to the service.
//
// Puts carry an id and claims a token of their own, so that one whose answer was lost is
// repeated without harm.

import { GristmillError, Problem, Refused, type Duration } from "./errors.js";
import {
  claimOf,
  durationText,
  putJson,
  resultOf,
  settlementJson,
  type Claim,
  type Extended,
  type Put,
  type PutAnswer,
  type PutOptions,
  type Result,
  type Settled,
  type Settlement,
} from "./model.js";
import { sleep, Transport, type CallOptions } from "./transport.js";

export const DEFAULT_URL = "http://127.0.0.1:4747";

/** Longest that one request waits, in milliseconds: the service's own limit. */
const POLL = 20_000;

/** What a client is made with. Times are milliseconds. */
export interface ClientOptions {
  /** How long an answer may take. */
  readonly timeout?: number;
  /** Who asks, where the service wants to know; else `GRISTMILL_TOKEN` of the environment. */
  readonly token?: string | undefined;
  /** How long a call is repeated while the service is away. */
  readonly patience?: number;
}

/** How tasks are claimed. */
export interface ClaimOptions {
  readonly max?: number;
  readonly lease?: Duration | undefined;
  /** How long the service waits for some, in milliseconds. */
  readonly wait?: number;
  readonly worker?: string | undefined;
  readonly source?: string | undefined;
  /** The claim's own, by which it can be repeated. One is made unless given. */
  readonly token?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Which tasks are meant. */
export interface Filter {
  readonly queue?: string;
  readonly state?: string;
  readonly key?: string;
  readonly group?: string;
  readonly source?: string;
  readonly error?: string;
  readonly since?: string;
  readonly order?: string;
}

/** To whom an operator's action is done, and why. */
export interface OperateOptions {
  readonly ids?: readonly string[];
  readonly filter?: Filter;
  readonly note?: string;
  readonly by?: string;
}

/** A service. */
export class Client {
  readonly url: string;
  readonly #transport: Transport;
  readonly #patience: number;
  readonly #token: string | undefined;

  constructor(url?: string, options: ClientOptions = {}) {
    this.url = url ?? environment("GRISTMILL_URL") ?? DEFAULT_URL;
    this.#token = options.token ?? environment("GRISTMILL_TOKEN");
    this.#transport = new Transport(this.url, options.timeout ?? 30_000, this.#token);
    this.#patience = options.patience ?? 30_000;
  }

  /** Another client of the same service, for the same caller. */
  another(options: Omit<ClientOptions, "token"> = {}): Client {
    return new Client(this.url, { ...options, token: this.#token });
  }

  /** Any route of the service, for what has no method here. */
  async call(method: string, path: string, body?: unknown, how: CallOptions = {}): Promise<any> {
    return this.#transport.call(method, path, body, { patience: this.#patience, ...how });
  }

  // ---- putting ---------------------------------------------------------------

  /** Puts one task. Throws `Refused` when it is not taken. */
  async put(queue: string, payload: unknown, options: PutOptions = {}): Promise<PutAnswer> {
    return this.#refusing(() =>
      this.call("POST", tasksOf(queue), named(putJson({ payload, ...options }))),
    );
  }

  /**
   * Puts any number of tasks, a flush at a time, and gives an answer each, in order. With
   * `atomic` all are one flush: all of them or none.
   */
  async *putMany(
    queue: string,
    tasks: Iterable<Put> | AsyncIterable<Put>,
    { flush = 1000, atomic = false }: { flush?: number; atomic?: boolean } = {},
  ): AsyncGenerator<PutAnswer, void, undefined> {
    let batch: unknown[] = [];
    const path = tasksOf(queue) + (atomic ? "?atomic=true" : "");
    const send = (): Promise<PutAnswer[]> => {
      const all = batch;
      batch = [];
      return this.#refusing(() => this.call("POST", path, all));
    };
    for await (const task of tasks) {
      batch.push(named(putJson(task)));
      if (batch.length >= flush && !atomic) yield* await send();
    }
    if (batch.length > 0) yield* await send();
  }

  async #refusing<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (error instanceof Problem) throw new Refused(error.said);
      throw error;
    }
  }

  // ---- working ---------------------------------------------------------------

  /** Takes tasks of one of the queues; waits for some if asked to. */
  async claim<T = unknown>(queues: readonly string[], how: ClaimOptions = {}): Promise<Claim<T>> {
    const { max = 1, lease, wait = 0, worker, source, token, signal } = how;
    const asked = {
      queues,
      max,
      wait: `${Math.round(wait)}ms`,
      token: token ?? randomHex(),
      lease: lease === undefined ? undefined : durationText(lease),
      worker,
      source,
    };
    return claimOf<T>(await this.call("POST", "/v1/claims", asked, { wait, signal }));
  }

  /** Says how attempts ended; one answer each. */
  async settle(settlements: readonly Settlement[]): Promise<Settled[]> {
    if (settlements.length === 0) return [];
    return this.call("POST", "/v1/settlements", settlements.map(settlementJson));
  }

  /** Prolongs a lease. */
  async extend(queue: string, token: string, lease: Duration): Promise<Extended> {
    const asked = [{ queue, token, lease: durationText(lease) }];
    return (await this.call("POST", "/v1/extensions", asked))[0];
  }

  // ---- looking and operating ---------------------------------------------------

  /** One task; with `wait` (milliseconds), when it has ended or the time is over. */
  async task(id: string, { wait = 0 }: { wait?: number } = {}): Promise<any> {
    const query = wait > 0 ? `?wait=${Math.round(wait)}ms` : "";
    return this.call("GET", `/v1/tasks/${encodeURIComponent(id)}${query}`, undefined, { wait });
  }

  /**
   * What came of a task; waits up to `wait` milliseconds for its end. Put it with `wanted`,
   * or let its queue keep what handlers return.
   */
  async result<T = any>(id: string, { wait = 0 }: { wait?: number } = {}): Promise<Result<T>> {
    const until = performance.now() + wait;
    for (;;) {
      const left = Math.max(0, until - performance.now());
      let result: Result<T>;
      try {
        result = resultOf<T>(await this.task(id, { wait: Math.min(left, POLL) }));
      } catch (error) {
        if (error instanceof Problem && error.code === "unknown_task") return { state: "not_known" };
        throw error;
      }
      if (result.state !== "open" || left <= 0) return result;
    }
  }

  /**
   * Puts one task and waits up to `wait` milliseconds for what comes of it; of a duplicate,
   * for what comes of the task that stands.
   */
  async putAndWait<T = any>(
    queue: string,
    payload: unknown,
    { wait = 30_000, ...options }: PutOptions & { wait?: number } = {},
  ): Promise<Result<T>> {
    const { id } = await this.put(queue, payload, { ...options, wanted: true });
    if (id === undefined) throw new GristmillError("the service named no task");
    return this.result<T>(id, { wait });
  }

  /** All tasks that match, page by page. */
  async *tasks(filter: Filter = {}): AsyncGenerator<any, void, undefined> {
    const query = new URLSearchParams(said(filter));
    for (;;) {
      const page = await this.call("GET", `/v1/tasks?${query}`);
      yield* page.tasks;
      if (page.next === null) return;
      query.set("cursor", page.next);
    }
  }

  /** Which of these keys stand, and where. */
  async find(queue: string, keys: readonly string[]): Promise<any[]> {
    return (await this.call("POST", "/v1/find", { queue, keys })).standing;
  }

  /** The numbers of every queue. */
  async stats(): Promise<any[]> {
    return this.call("GET", "/v1/stats");
  }

  /** Says that a queue exists, with these settings. */
  async declare(queue: string, settings: Readonly<Record<string, unknown>> = {}): Promise<any> {
    return this.call("PUT", `/v1/queues/${encodeURIComponent(queue)}`, { settings });
  }

  /**
   * Does `retry`, `discard`, `cancel` or `resolve` to tasks, by ids or all that match a
   * filter; returns how many were moved. A filter is carried out by the service, also when
   * this program ends: `operation` and `stopOperation` look after it.
   */
  async operate(action: string, how: OperateOptions): Promise<number> {
    let said = await this.call("POST", `/v1/tasks/${action}`, how);
    while (said.state === "running" || said.state === "stopping") {
      await sleep(100);
      said = await this.operation(said.id);
    }
    if (said.state === "failed") {
      throw new Refused({ code: "operation_failed", detail: String(said.why) });
    }
    return Number(said.moved);
  }

  /** How an operation on all tasks that match a filter fares. */
  async operation(id: string): Promise<any> {
    return this.call("GET", `/v1/operations/${encodeURIComponent(id)}`);
  }

  /** Has an operation end after the step it is at. */
  async stopOperation(id: string, by?: string): Promise<any> {
    return this.call("POST", `/v1/operations/${encodeURIComponent(id)}/stop`, { by });
  }
}

function tasksOf(queue: string): string {
  return `/v1/queues/${encodeURIComponent(queue)}/tasks`;
}

/** The put with an id, by which it can be repeated. */
function named(put: Record<string, unknown>): Record<string, unknown> {
  return put["id"] === undefined ? { ...put, id: randomHex() } : put;
}

function said(filter: Filter): [string, string][] {
  const pairs = Object.entries(filter) as [string, string | undefined][];
  return pairs.filter((pair): pair is [string, string] => pair[1] !== undefined);
}

/** Sixteen random bytes, as text. */
export function randomHex(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A variable of the environment, where there is one. */
function environment(name: string): string | undefined {
  const process = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process;
  return process?.env?.[name] || undefined;
}

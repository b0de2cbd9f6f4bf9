// One request and its answer, with a deadline; repeated while the service is away.

import { GristmillError, Problem, Unavailable, Unknown } from "./errors.js";
import { fromJson, toJson } from "./json.js";

/** How a call is made. */
export interface CallOptions {
  /** How long the service may wait before it answers, in milliseconds. */
  readonly wait?: number;
  /** Whether it is no harm to say it again when nobody knows whether it happened. */
  readonly repeatable?: boolean;
  /** How long it is repeated while the service is away, in milliseconds. */
  readonly patience?: number;
  /** Ends the call, and what waits at the service. */
  readonly signal?: AbortSignal | undefined;
}

/** What the runtimes say of a connection that was never made. */
const NEVER_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
  "ConnectionRefused",
]);

export class Transport {
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(
    url: string,
    readonly timeout: number,
    token: string | undefined,
  ) {
    let parts: URL;
    try {
      parts = new URL(url);
    } catch {
      throw new GristmillError(`'${url}' is no address: write it like http://127.0.0.1:4747`);
    }
    if (parts.protocol !== "http:" && parts.protocol !== "https:") {
      throw new GristmillError(`'${url}' is no address: write it like http://127.0.0.1:4747`);
    }
    this.#base = url.replace(/\/+$/, "");
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  /**
   * One request and its answer. Throws `Unavailable` where it was not sent, and `Unknown`
   * where it may have been and no whole answer came.
   */
  async once(
    method: string,
    path: string,
    body: unknown,
    wait: number,
    signal?: AbortSignal,
  ): Promise<{ status: number; said: any }> {
    const text = body === undefined ? null : toJson(body);
    const headers = { ...this.#headers, ...(text === null ? {} : { "content-type": "application/json" }) };
    const ended = new AbortController();
    const late = setTimeout(() => ended.abort(new Error("no answer in time")), this.timeout + wait);
    const end = () => ended.abort(signal?.reason);
    signal?.addEventListener("abort", end, { once: true });
    if (signal?.aborted) end();
    try {
      const answer = await fetch(this.#base + path, {
        method,
        body: text,
        headers,
        redirect: "error",
        signal: ended.signal,
      });
      return { status: answer.status, said: read(await answer.text()) };
    } catch (error) {
      const code = (error as { cause?: { code?: string } }).cause?.code ?? "";
      if (NEVER_SENT.has(code)) {
        throw new Unavailable(`the service does not answer: ${code}`, { cause: error });
      }
      throw new Unknown(`no answer came: ${reason(error)}`, { cause: error });
    } finally {
      clearTimeout(late);
      signal?.removeEventListener("abort", end);
    }
  }

  /**
   * A request that is repeated while the service is away, and, where that is no harm, when
   * nobody knows whether it happened.
   */
  async call(method: string, path: string, body?: unknown, how: CallOptions = {}): Promise<any> {
    const { wait = 0, repeatable = true, patience = 30_000, signal } = how;
    const until = Date.now() + patience;
    let pause = 50;
    for (;;) {
      let last: GristmillError;
      try {
        const { status, said } = await this.once(method, path, body, wait, signal);
        if (status < 400) return said;
        const problem = asProblem(status, said);
        if (status === 503) last = new Unavailable(problem.message);
        else if (status === 504) last = new Unknown(problem.message);
        else throw problem;
      } catch (error) {
        if (!(error instanceof Unavailable) && !(error instanceof Unknown)) throw error;
        last = error;
      }
      if (last instanceof Unknown && !repeatable) throw last;
      if (signal?.aborted || Date.now() + pause > until) throw last;
      await sleep(pause, signal);
      pause = Math.min(pause * 2, 2000);
    }
  }
}

/** An answer's values; of one that is not JSON (a proxy's page) its text. */
function read(words: string): any {
  if (words === "") return null;
  try {
    return fromJson(words);
  } catch {
    return words;
  }
}

/** Waits, but not after the signal. */
export function sleep(time: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, time);
    signal?.addEventListener("abort", done, { once: true });
  });
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}

/** What the service said, or what can be said of an answer that is not its own. */
function asProblem(status: number, said: any): Problem {
  if (said !== null && typeof said === "object" && "code" in said) return new Problem(said);
  return new Problem({ status, code: `http_${status}`, detail: String(said).slice(0, 200) });
}

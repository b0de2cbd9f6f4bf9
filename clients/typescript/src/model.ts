// What goes to the service and what comes back.

import { GristmillError, type Duration } from "./errors.js";

/** Anything that has a form in JSON. */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [name: string]: Json | undefined };

/** The wait after an error. */
export interface Backoff {
  readonly base?: Duration;
  readonly cap?: Duration;
  readonly jitter?: boolean;
}

/** What can be said of a task that is put, beside its payload. */
export interface PutOptions {
  /** What it is about: the unit of deduplication and mutual exclusion. */
  readonly key?: string | undefined;
  readonly delay?: Duration | undefined;
  /** When it may first run, like "2027-01-01T09:00:00Z", or a Date. */
  readonly runAt?: string | Date | undefined;
  /** Lower runs first. */
  readonly priority?: number | undefined;
  readonly group?: string | undefined;
  readonly source?: string | undefined;
  /** The caller's own id, by which a repeat is recognised. One is made unless given. */
  readonly id?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly encoding?: "json" | "msgpack" | "raw" | undefined;
  /** How long its handler may take; else as its queue says. */
  readonly timeout?: Duration | undefined;
  /** Attempts before it fails; else as its queue says. */
  readonly maxAttempts?: number | "unlimited" | undefined;
  /** The wait after an error; else as its queue says. */
  readonly backoff?: Backoff | undefined;
  /** Somebody waits for its end: what came of it is kept ten minutes. */
  readonly wanted?: boolean | undefined;
}

/** A task to be put: its payload, and whatever else is to be said of it. */
export interface Put<T = unknown> extends PutOptions {
  /** Anything that has a form in JSON, or bytes. */
  readonly payload: T;
}

/** What became of a put; `refused` only in bulk. */
export interface PutAnswer {
  readonly outcome: "enqueued" | "duplicate" | "replaced" | "refused";
  readonly id?: string;
  readonly reason?: string;
  readonly detail?: string;
}

/** A task as a claim gives it. */
export interface ClaimedTask<T = unknown> {
  readonly id: string;
  readonly queue: string;
  /** JSON as values, anything else as bytes. */
  readonly payload: T;
  readonly encoding: string;
  /** Which run this is, counted from 1. */
  readonly attempt: number;
  /** Claims ever: a number that never falls. */
  readonly claims: number;
  readonly key: string | undefined;
  readonly group: string | undefined;
  readonly source: string | undefined;
  readonly priority: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly createdAt: string;
  readonly runAt: string;
}

/** Tasks of one queue under one lease. Empty is a normal answer. */
export interface Claim<T = unknown> {
  readonly token: string;
  readonly queue: string | undefined;
  /** How long the lease lasts from the moment the claim was asked for. */
  readonly leaseMs: number;
  readonly tasks: readonly ClaimedTask<T>[];
}

/** How one attempt ended. */
export interface Settlement {
  readonly id: string;
  readonly token: string;
  readonly outcome: "done" | "error" | "retry" | "fail" | "release" | "cancelled";
  readonly error?: string | undefined;
  readonly after?: Duration | undefined;
  readonly started?: boolean | undefined;
  readonly followUps?: readonly FollowUp[] | undefined;
  /** What the handler returns, of `done`: anything that has a form in JSON. */
  readonly result?: unknown;
}

/** A task that is put together with another one's `done`: both or neither. */
export interface FollowUp<T = unknown> extends Put<T> {
  readonly queue: string;
}

/** What became of a settlement. */
export interface Settled {
  readonly id: string;
  readonly outcome: "recorded" | "already_recorded" | "gone" | "lease_lost";
  readonly became?: string;
}

/** What became of an extension. */
export interface Extended {
  readonly token: string;
  readonly outcome: string;
  readonly cancelled: readonly string[];
  readonly lost: readonly string[];
}

/** What came of a task. */
export interface Result<T = unknown> {
  /** `open` while it has not ended, `not_known` where nothing kept its end. */
  readonly state: "done" | "failed" | "cancelled" | "discarded" | "open" | "not_known";
  /** What its handler returned: JSON as values, anything else as bytes. */
  readonly value?: T;
  /** Why it failed, where that is kept. */
  readonly error?: string;
}

/** A time as the service reads it. */
export function durationText(time: Duration): string {
  if (typeof time === "string") return time;
  if (!Number.isFinite(time) || time < 0) throw new GristmillError(`${time} is no time`);
  return `${Math.round(time)}ms`;
}

/** A put as it is sent. */
export function putJson(put: Put): Record<string, unknown> {
  const { payload, runAt, delay, timeout, maxAttempts, backoff, ...same } = put;
  const said: Record<string, unknown> = { ...same };
  if (payload instanceof Uint8Array) said["payload_base64"] = toBase64(payload);
  else if (payload === undefined) throw new GristmillError("a task without a payload: say null");
  else said["payload"] = payload;
  if (runAt !== undefined) said["run_at"] = runAt instanceof Date ? runAt.toISOString() : runAt;
  if (delay !== undefined) said["delay"] = durationText(delay);
  if (timeout !== undefined) said["timeout"] = durationText(timeout);
  if (maxAttempts !== undefined) said["max_attempts"] = maxAttempts;
  if (backoff !== undefined) {
    const { base, cap, jitter } = backoff;
    said["backoff"] = {
      base: base === undefined ? undefined : durationText(base),
      cap: cap === undefined ? undefined : durationText(cap),
      jitter,
    };
  }
  return said;
}

/** A settlement as it is sent. */
export function settlementJson(settlement: Settlement): Record<string, unknown> {
  const { after, followUps, ...same } = settlement;
  const said: Record<string, unknown> = { ...same };
  if (after !== undefined) said["after"] = durationText(after);
  if (followUps !== undefined && followUps.length > 0) said["follow_ups"] = followUps.map(putJson);
  return said;
}

/** A claim as it came. */
export function claimOf<T>(said: any): Claim<T> {
  return {
    token: said.token,
    queue: said.queue ?? undefined,
    leaseMs: said.lease_ms,
    tasks: said.tasks.map((task: any) => claimedOf<T>(task)),
  };
}

function claimedOf<T>(said: any): ClaimedTask<T> {
  return {
    id: said.id,
    queue: said.queue,
    payload: payloadOf(said) as T,
    encoding: said.encoding,
    attempt: said.attempt,
    claims: said.claims,
    key: said.key ?? undefined,
    group: said.group ?? undefined,
    source: said.source ?? undefined,
    priority: said.priority ?? 0,
    headers: said.headers ?? {},
    createdAt: said.created_at,
    runAt: said.run_at,
  };
}

/** The payload of an answer: JSON as values, anything else as bytes. */
export function payloadOf(said: { payload?: unknown; payload_base64?: string }): unknown {
  return said.payload_base64 === undefined ? said.payload : fromBase64(said.payload_base64);
}

/** What came of a task, out of what is said of it. */
export function resultOf<T>(said: any): Result<T> {
  const ended = said.state === "done" || said.state === "failed";
  if (!ended && said.state !== "gone") return { state: "open" };
  const state = ended ? said.state : (said.outcome ?? "not_known");
  const value = said.result_base64 === undefined ? said.result : fromBase64(said.result_base64);
  return {
    state,
    ...(value === undefined ? {} : { value }),
    ...(state === "failed" && said.error != null ? { error: said.error } : {}),
  };
}

/** Bytes as text. */
export function toBase64(bytes: Uint8Array): string {
  let text = "";
  // In parts: a function takes only so many arguments.
  for (let at = 0; at < bytes.length; at += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(text);
}

/** What bytes a text stands for; throws where it stands for none. */
export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

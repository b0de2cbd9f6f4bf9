// What generated code stands on: the types of a contract's fields, in JSON and back, and
// the queues that are made of them.
//
// `gristmill generate --lang typescript` writes code that uses it; nothing of it needs to
// be called by hand.

import type { Client } from "./client.js";
import { GristmillError } from "./errors.js";
import { fromBase64, toBase64, type Put, type PutAnswer, type PutOptions } from "./model.js";
import type { Task, Worker } from "./worker.js";

/** A payload is not of its queue's contract. */
export class Misfit extends GristmillError {
  override name = "Misfit";
}

/** A type of the contract. Both ways throw words that end "it is not …". */
export interface Kind<T> {
  readonly read: (value: unknown) => T;
  readonly write: (value: T) => unknown;
  readonly isOptional?: boolean;
}

function misfit(wanted: string): never {
  throw new Misfit(`it is not ${wanted}`);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : misfit("a text");
}

function truth(value: unknown): boolean {
  return typeof value === "boolean" ? value : misfit("true or false");
}

function whole(value: unknown): number {
  if (typeof value === "number" && Number.isSafeInteger(value)) return value;
  if (typeof value === "bigint") misfit("a number up to 2^53: the contract says int64 for larger ones");
  return misfit("a whole number");
}

function big(value: unknown): bigint {
  const read = typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof read === "bigint" && BigInt.asIntN(64, read) === read) return read;
  return misfit("a whole number of 64 bits");
}

const NAMED = new Map<unknown, number>([
  ["NaN", NaN],
  ["Infinity", Infinity],
  ["-Infinity", -Infinity],
]);

function fraction(value: unknown): number {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  return NAMED.get(value) ?? misfit("a number");
}

function bytesOf(value: unknown): Uint8Array {
  try {
    return fromBase64(text(value));
  } catch {
    return misfit("bytes in base64");
  }
}

function instant(value: unknown): Date {
  const said = text(value);
  const read = new Date(said);
  // Without a zone a time is whatever the reader's clock makes of it.
  return /(?:Z|[+-]\d\d:?\d\d)$/i.test(said) && !Number.isNaN(read.getTime())
    ? read
    : misfit("a time with its zone");
}

export const string: Kind<string> = { read: text, write: text };
export const bool: Kind<boolean> = { read: truth, write: truth };
/** A number, where a number holds it. */
export const int: Kind<number> = { read: whole, write: whole };
export const int64: Kind<bigint> = { read: big, write: big };
export const float64: Kind<number> = {
  read: fraction,
  write: (value) => (Number.isFinite(fraction(value)) ? value : String(value)),
};
export const bytes: Kind<Uint8Array> = {
  read: bytesOf,
  write: (value) => (value instanceof Uint8Array ? toBase64(value) : misfit("bytes")),
};
/** To the millisecond, which is as much as a Date knows. */
export const timestamp: Kind<Date> = {
  read: instant,
  write: (value) =>
    value instanceof Date && !Number.isNaN(value.getTime()) ? value.toISOString() : misfit("a time"),
};

/** A list of a kind. */
export function list<T>(kind: Kind<T>): Kind<readonly T[]> {
  const each = <A, B>(value: unknown, convert: (one: A) => B): B[] =>
    Array.isArray(value) ? value.map((one) => convert(one as A)) : misfit("a list");
  return {
    read: (value) => each(value, kind.read),
    write: (value) => each(value, kind.write),
  };
}

/** A field that may be missing. */
export function optional<T>(kind: Kind<T>): Kind<T | undefined> {
  return {
    isOptional: true,
    read: kind.read,
    write: (value) => (value === undefined ? undefined : kind.write(value)),
  };
}

/** The kinds of a task's fields. */
export type Fields<T> = { readonly [Name in keyof T]-?: Kind<T[Name]> };

/** A queue of the contract. */
export class Queue<T extends object> {
  constructor(
    readonly name: string,
    private readonly fields: Fields<T>,
  ) {}

  /** The payload of a task. Throws `Misfit` where a value is not of the contract. */
  payload(task: T): Record<string, unknown> {
    const said: Record<string, unknown> = {};
    for (const name in this.fields) {
      const value = task[name];
      if (value === undefined && this.fields[name].isOptional) continue;
      said[name] = this.about(name, () => this.fields[name].write(value));
    }
    return said;
  }

  /** The task of a payload. Throws `Misfit` where it is not of the contract. */
  read(payload: unknown): T {
    if (payload === null || typeof payload !== "object" || payload instanceof Uint8Array) {
      throw new Misfit(`the payload is not an object with the fields of ${this.name}`);
    }
    const found = payload as Record<string, unknown>;
    const task: Partial<T> = {};
    for (const name in this.fields) {
      const value = Object.hasOwn(found, name) ? found[name] : undefined;
      if (value === undefined || value === null) {
        if (this.fields[name].isOptional) continue;
        throw new Misfit(`field '${name}' of ${this.name} is missing`);
      }
      task[name] = this.about(name, () => this.fields[name].read(value));
    }
    return task as T;
  }

  /** Puts a task. */
  async put(client: Client, task: T, options: PutOptions = {}): Promise<PutAnswer> {
    return client.put(this.name, this.payload(task), options);
  }

  /** Puts any number of tasks, a flush at a time. */
  putMany(
    client: Client,
    tasks: Iterable<Put<T>> | AsyncIterable<Put<T>>,
    how: { flush?: number; atomic?: boolean } = {},
  ): AsyncGenerator<PutAnswer, void, undefined> {
    const queue = this;
    async function* written(): AsyncGenerator<Put> {
      for await (const put of tasks) yield { ...put, payload: queue.payload(put.payload) };
    }
    return client.putMany(this.name, written(), how);
  }

  /** The handler of the queue. What does not fit the contract is the attempt's error. */
  handle(worker: Worker, handler: (task: T, surroundings: Task) => unknown): void {
    worker.task(this.name, (task: Task) => handler(this.read(task.payload), task));
  }

  private about<R>(name: string, convert: () => R): R {
    try {
      return convert();
    } catch (error) {
      if (error instanceof Misfit) {
        throw new Misfit(`field '${name}' of ${this.name} does not fit: ${error.message}`);
      }
      throw error;
    }
  }
}

/** A queue, and the kinds of its fields. */
export function queue<T extends object>(name: string, fields: Fields<T>): Queue<T> {
  return new Queue(name, fields);
}

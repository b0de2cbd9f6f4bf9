// What can go wrong, by what the caller can do next; and what a handler may throw.

/** Everything that this package throws. */
export class GristmillError extends Error {
  override name = "GristmillError";
}

/** What the service says of a request that it refused. */
export interface ProblemFields {
  readonly status?: number;
  readonly code?: string;
  readonly field?: string | null;
  readonly detail?: string;
  readonly advice?: string;
  readonly [more: string]: unknown;
}

/** The service refused a request: `code` is stable, `field` is what is at fault. */
export class Problem extends GristmillError {
  override name = "Problem";
  readonly status: number;
  readonly code: string;
  readonly field: string | undefined;
  readonly detail: string;
  readonly advice: string;

  constructor(readonly said: ProblemFields) {
    const code = String(said.code ?? "unknown");
    const where = said.field ? ` (${said.field})` : "";
    super(`${code}${where}: ${said.detail ?? ""} ${said.advice ?? ""}`.trimEnd());
    this.status = Number(said.status ?? 0);
    this.code = code;
    this.field = said.field ?? undefined;
    this.detail = String(said.detail ?? "");
    this.advice = String(said.advice ?? "");
  }
}

/** A task was not taken: the queue is full or unknown, the payload does not fit. */
export class Refused extends Problem {
  override name = "Refused";
}

/** The service or its store is away, and nothing was written. Try again later. */
export class Unavailable extends GristmillError {
  override name = "Unavailable";
}

/**
 * No answer came: it may or may not have happened. Repeat it only with the same id or
 * token.
 */
export class Unknown extends GristmillError {
  override name = "Unknown";
}

/** A time: text like "30s" or "5m", or a number of milliseconds. */
export type Duration = string | number;

/** Thrown by a handler: run the task again after this time; counts as an attempt. */
export class Retry extends GristmillError {
  override name = "Retry";

  constructor(
    readonly after: Duration,
    readonly reason?: string,
  ) {
    super(reason ?? `again after ${after}`);
  }
}

/** Thrown by a handler: the task can never succeed, and fails now. */
export class Fail extends GristmillError {
  override name = "Fail";
}

/** Thrown by a handler: give the task back; the attempt does not count. */
export class Release extends GristmillError {
  override name = "Release";

  constructor(readonly after?: Duration) {
    super("given back");
  }
}

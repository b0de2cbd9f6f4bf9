// Gristmill for TypeScript and JavaScript: the client of the service.

export { Client, DEFAULT_URL } from "./client.js";
export type { ClaimOptions, ClientOptions, Filter, OperateOptions } from "./client.js";
export * as contract from "./contract.js";
export {
  Fail,
  GristmillError,
  Problem,
  Refused,
  Release,
  Retry,
  Unavailable,
  Unknown,
} from "./errors.js";
export type { Duration, ProblemFields } from "./errors.js";
export type {
  Backoff,
  Claim,
  ClaimedTask,
  Extended,
  FollowUp,
  Json,
  Put,
  PutAnswer,
  PutOptions,
  Result,
  Settled,
  Settlement,
} from "./model.js";
export { Task, Worker } from "./worker.js";
export type { BatchHandler, Handler, WorkerOptions } from "./worker.js";

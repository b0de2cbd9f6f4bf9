#!/usr/bin/env node
// A worker in JavaScript with node-postgres, as a service would run it.
//
//     npm install pg
//     DATABASE_URL=postgres://... node worker.mjs [--source scraper] [--drain]
//
// Claims lines, lets the database match them (match_line in sql/schema.sql), and
// settles each in the transaction of its match. A timer prolongs the lease
// meanwhile. On SIGTERM or Ctrl-C the line in hand is finished and the others are
// given back, so that another worker has them at once.

import { hostname } from "node:os";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

// Found where it was installed: beside this file, or where the worker was started.
const pg = [import.meta.url, `${process.cwd()}/`].map((from) => {
  try {
    return createRequire(from)("pg");
  } catch {
    return null;
  }
}).find((found) => found);
if (!pg) {
  console.error("worker.mjs: npm install pg");
  process.exit(1);
}

const { values: asked } = parseArgs({
  options: {
    source: { type: "string" },
    batch: { type: "string", default: "5" },
    lease: { type: "string", default: "30" },
    slow: { type: "string", default: "0" },
    drain: { type: "boolean", default: false },
  },
});
const worker = `js-${hostname()}-${process.pid}`;
const db = new pg.Client(process.env.DATABASE_URL);
const beat = new pg.Client(process.env.DATABASE_URL);
await Promise.all([db.connect(), beat.connect()]);

let stopping = false;
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => (stopping = true));

// The same connection hears wake-ups: a line that was just put need not wait for
// the next look.
let wake = () => {};
beat.on("notification", () => wake());
await beat.query('LISTEN "gristmill.wake"');

/** One line: its match and its settlement are one transaction. */
async function work({ id, token, payload }) {
  const { rows: [{ ingredient, name }] } = await db.query(
    "SELECT match_line($1) AS ingredient, bare_name($1) AS name", [payload.line]);
  if (ingredient === null) {
    const error = `no ingredient is called '${name}'`;
    await db.query("SELECT gristmill.fail($1, $2, $3)", [id, token, error]);
    return error;
  }
  await db.query("BEGIN");
  await db.query(
    "UPDATE recipe_line SET ingredient = $1, matched_by = $2, matched_at = now() WHERE id = $3",
    [ingredient, worker, payload.line_id]);
  const { rows: [{ complete }] } = await db.query("SELECT gristmill.complete($1, $2)", [id, token]);
  // If the task went to another worker, that one will write the match.
  await db.query(complete === "recorded" ? "COMMIT" : "ROLLBACK");
  return `ingredient ${ingredient} (${complete})`;
}

while (!stopping) {
  const { rows: tasks } = await db.query(
    "SELECT id, token, payload FROM gristmill.claim($1, $2, $3, $4, $5)",
    ["ingredient-match", asked.batch, asked.lease, asked.source ?? null, worker]);
  if (tasks.length === 0) {
    if (asked.drain) break;
    // A notice ends the wait; a lost one costs a second.
    await Promise.race([new Promise((heard) => (wake = heard)), sleep(1000)]);
    continue;
  }
  let lost = false;
  const ended = new Set();
  const timer = setInterval(async () => {
    const { rows: [lease] } = await beat.query(
      "SELECT extended, cancelled, lost FROM gristmill.extend($1, $2)", [tasks[0].token, asked.lease]);
    for (const id of [...lease.cancelled, ...lease.lost]) ended.add(id);
    // Somebody else has the tasks by now.
    lost = !lease.extended;
  }, (Number(asked.lease) * 1000) / 3);
  for (const task of tasks) {
    if (lost) break;
    if (ended.has(task.id)) continue;
    if (stopping) {
      await db.query("SELECT gristmill.release($1, $2, started => false)", [task.id, task.token]);
      continue;
    }
    await sleep(Number(asked.slow) * 1000);
    console.log(`line ${task.payload.line_id}: ${await work(task)}`);
  }
  clearInterval(timer);
}
await Promise.all([db.end(), beat.end()]);

// Says the transcripts of docs/sql.md with node-postgres, every literal and variable
// as a parameter without a type, each statement as a login with the one role that
// may.
//
//     node sql_page.mjs URL PAGE      where `pg` is installed

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const pg = createRequire(`${process.cwd()}/`)("pg");

const ROLES = {
  put: "enqueue enqueue_many wake result",
  work: "claim complete complete_many error retry fail release extend checkpoint requeue_expired maintain",
  read: "stats schedules",
};

/** Each statement, and what is printed after it. */
function* steps(page) {
  for (const [, block] of page.matchAll(/^```psql\n([^]*?)^```/gm)) {
    for (const step of block.split(/^shop=> /m).slice(1)) {
      const [typed, printed] = [[], []];
      for (const line of step.split("\n")) {
        if (line.startsWith("shop-> ")) typed.push(line.slice(7));
        else if (typed.length) printed.push(line);
        else typed.push(line);
      }
      yield [typed.join(" "), printed];
    }
  }
}

function speaker(statement) {
  for (const [role, names] of Object.entries(ROLES)) {
    if (names.split(" ").some((name) => statement.includes(`gristmill.${name}(`))) return role;
  }
  if (statement.includes("gristmill.tasks") && !statement.includes("session_user")) return "read";
  return statement.includes("gristmill.") ? "admin" : null;
}

const words = (lines) =>
  lines.filter((line) => !/^[-+]*$/.test(line)).map((line) => line.trim().split(/\s+/).join(" ")).filter(Boolean);

const [url, path] = process.argv.slice(2);
const db = new pg.Client(url);
await db.connect();
// As the server writes it, which is what psql prints.
const types = { getTypeParser: () => (text) => text };
const known = {};
let said = 0;
for (const [typed, printed] of steps(readFileSync(path, "utf8"))) {
  const keep = typed.endsWith("\\gset");
  let statement = typed.replace(/\\gset$/, "").trim().replace(/;$/, "");
  const values = [];
  if (!statement.startsWith("CREATE")) {
    statement = statement.replace(/:'(\w+)'/g, ":$1").replace(/('(?:[^']|'')*')|(?<!:):(\w+)/g, (_, literal, name) => {
      values.push(name ? known[name] : literal.slice(1, -1).replaceAll("''", "'"));
      return `$${values.length}`;
    });
  }
  const role = speaker(statement);
  await db.query(role ? `SET SESSION AUTHORIZATION page_${role}` : "RESET SESSION AUTHORIZATION");
  let answer = [];
  try {
    const { fields, rows } = await db.query({ text: statement, values, rowMode: "array", types });
    const names = fields.map((field) => field.name);
    if (keep) names.forEach((name, at) => (known[name] = rows[0][at]));
    else if (names.length) {
      const shown = rows.map((row) => row.map((value) => value ?? "").join(" | "));
      answer = [names.join(" | "), ...shown, `(${rows.length} row${rows.length === 1 ? "" : "s"})`];
    }
  } catch (error) {
    answer = [`ERROR: ${error.message}`];
  }
  if (JSON.stringify(words(answer)) !== JSON.stringify(words(printed))) {
    console.error(typed, statement, values, "\nsaid", words(answer), "\nnot ", words(printed));
    process.exit(1);
  }
  said += 1;
}
console.log(`${said} statements`);
await db.end();

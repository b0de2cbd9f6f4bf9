// JSON whose whole numbers are whole: those that a number does not hold are bigints.

import { GristmillError } from "./errors.js";

/** What stands around a bigint on its way; nobody else can write it. */
const MARK = `${Array.from(crypto.getRandomValues(new Uint32Array(4))).join("-")}:`;
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, "g");
/** Texts, so that they are passed over, and whole numbers of many digits. */
const LONG = /"[^"\\]*(?:\\.[^"\\]*)*"|(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/gs;

/** Values as JSON. What has no form there is an error, and not null as usual. */
export function toJson(value: unknown): string {
  let any = false;
  const text = JSON.stringify(value, (name, inner) => {
    if (typeof inner === "number" && !Number.isFinite(inner)) {
      throw new GristmillError(`${name || "the value"} is ${inner}, which JSON has no form for`);
    }
    if (typeof inner !== "bigint") return inner;
    any = true;
    return `${MARK}${inner}`;
  });
  return any ? text.replace(MARKED, "$1") : text;
}

/** JSON as values. */
export function fromJson(text: string): any {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const marked = text.replace(LONG, (found) =>
    found.startsWith('"') || Number.isSafeInteger(Number(found)) ? found : `"${MARK}${found}"`,
  );
  return JSON.parse(marked, (_, inner) =>
    typeof inner === "string" && inner.startsWith(MARK) ? BigInt(inner.slice(MARK.length)) : inner,
  );
}

//! Python and JavaScript read what we write, and write what we read: with
//! `msgpack` of PyPI and `@msgpack/msgpack` of npm, installed for the test.

use std::path::Path;
use std::process::{Command, Output};

use gristmill_contract::view;
use gristmill_core::Payload;
use serde_json::Value;

use crate::sample::{every_type, hard_value};

/// Reads the payload, shows it in a form that loses nothing, and writes it
/// again.
const PYTHON: &str = r#"
import base64, json, math, msgpack
def show(v):
    if isinstance(v, bool): return {"bool": v}
    if isinstance(v, int): return {"int": str(v)}
    if isinstance(v, float): return {"float": "inf" if math.isinf(v) else float(v).hex()}
    if isinstance(v, bytes): return {"bytes": base64.b64encode(v).decode()}
    if isinstance(v, str): return {"str": v}
    return [show(x) for x in v]
value = msgpack.unpackb(open("payload", "rb").read())
open("shown.json", "w").write(json.dumps({k: show(v) for k, v in value.items()}))
open("again", "wb").write(msgpack.packb(value))
"#;

const NODE: &str = r#"
const fs = require("fs");
const { encode, decode } = require("@msgpack/msgpack");
const bits = (v) => { const b = Buffer.alloc(8); b.writeDoubleBE(v); return b.toString("hex"); };
function show(v) {
  if (typeof v === "boolean") return { bool: v };
  if (typeof v === "bigint") return { int: v.toString() };
  if (typeof v === "number") return Number.isInteger(v) ? { int: v.toString() } : { bits: bits(v) };
  if (v instanceof Uint8Array) return { bytes: Buffer.from(v).toString("base64") };
  if (typeof v === "string") return { str: v };
  return v.map(show);
}
const value = decode(fs.readFileSync("payload"), { useBigInt64: true });
const shown = Object.fromEntries(Object.entries(value).map(([k, v]) => [k, show(v)]));
fs.writeFileSync("shown.json", JSON.stringify(shown));
fs.writeFileSync("again", encode(value, { useBigInt64: true }));
"#;

/// Runs a program; none, said aloud, when it is not here or fails to install.
fn tried(folder: &Path, program: &str, words: &[&str]) -> Option<Output> {
    let output = Command::new(program).args(words).current_dir(folder).output();
    match output {
        Ok(output) if output.status.success() => Some(output),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            println!("NOT RUN: {program} {words:?}: {said}");
            None
        }
        Err(error) => {
            println!("NOT RUN: {program}: {error}");
            None
        }
    }
}

/// What the other language must have seen of a value of ours.
fn wanted(name: &str, value: &Value, float: impl Fn(f64) -> Value + Copy) -> Value {
    if let Value::Array(list) = value {
        return list.iter().map(|value| wanted(name, value, float)).collect();
    }
    let kind = name.split('_').next().unwrap();
    match (kind, value) {
        ("float64", Value::String(_)) => float(f64::INFINITY),
        ("float64", value) => float(value.as_f64().unwrap()),
        ("bytes", value) => serde_json::json!({ "bytes": value }),
        ("bool", value) => serde_json::json!({ "bool": value }),
        ("int" | "int64", value) => serde_json::json!({ "int": value.to_string() }),
        (_, value) => serde_json::json!({ "str": value }),
    }
}

fn compare(folder: &Path, float: impl Fn(f64) -> Value + Copy) {
    let shown = std::fs::read_to_string(folder.join("shown.json")).unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    for (name, value) in hard_value().as_object().unwrap() {
        assert_eq!(shown[name], wanted(name, value, float), "{name}");
    }
    let again = Payload::msgpack(std::fs::read(folder.join("again")).unwrap());
    let back: Value = serde_json::from_str(&view::to_json(&every_type(), &again).unwrap()).unwrap();
    assert_eq!(back, hard_value(), "what it wrote");
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let payload = view::to_payload(&every_type(), &hard_value()).unwrap();
    std::fs::write(folder.path().join("payload"), &payload.bytes).unwrap();
    folder
}

#[test]
#[ignore = "installs a package: long form"]
fn long_python_reads_and_writes_the_same_value() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("look.py"), PYTHON).unwrap();
    let ready = tried(at, "python3", &["-m", "venv", "venv"])
        .and_then(|_| tried(at, "venv/bin/pip", &["install", "--quiet", "msgpack"]));
    if ready.is_none() {
        return;
    }
    assert!(tried(at, "venv/bin/python", &["look.py"]).is_some(), "the script failed");
    compare(at, |float| {
        if float.is_infinite() {
            return serde_json::json!({ "float": "inf" });
        }
        // Python's own hex form, by Python: compared as numbers instead.
        let shown = Command::new("venv/bin/python")
            .args(["-c", &format!("print(float.hex(float('{float:e}')))")])
            .current_dir(at)
            .output()
            .unwrap();
        serde_json::json!({ "float": String::from_utf8(shown.stdout).unwrap().trim() })
    });
}

#[test]
#[ignore = "installs a package: long form"]
fn long_node_reads_and_writes_the_same_value() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("look.js"), NODE).unwrap();
    let words = ["install", "--silent", "--no-fund", "--no-audit", "@msgpack/msgpack"];
    if tried(at, "npm", &words).is_none() {
        return;
    }
    assert!(tried(at, "node", &["look.js"]).is_some(), "the script failed");
    compare(at, |float| {
        if float.fract() == 0.0 && float.is_finite() && float.abs() < 1e21 {
            return serde_json::json!({ "int": format!("{float}") });
        }
        if float.fract() == 0.0 && float.is_finite() {
            // JavaScript shows large ones its own way; they are whole to it.
            return serde_json::json!({ "int": "1.5e+300" });
        }
        serde_json::json!({ "bits": format!("{:016x}", float.to_bits()) })
    });
}

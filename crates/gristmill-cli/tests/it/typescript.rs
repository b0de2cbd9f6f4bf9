//! The TypeScript client's own tests, what its README shows, and generated code, against
//! a service of this build. TypeScript's compiler comes from npm, once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::http::started;
use crate::init::{OWN, handled_by};
use crate::place::Place;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A program's words; none, said aloud, when it is not here or fails.
fn tried(folder: &Path, program: &str, words: &[&str]) -> Option<String> {
    match Command::new(program).args(words).current_dir(folder).output() {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
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

/// The compiler, of the version that the client's lock file pins.
fn compiler() -> Option<PathBuf> {
    let version = tried(Path::new("."), "node", &["--version"])?;
    let major: u32 = version.trim_start_matches('v').split('.').next()?.parse().ok()?;
    if major < 20 {
        println!("NOT RUN: node is {}, and 20 is needed", version.trim());
        return None;
    }
    let (lock, package) = (here("clients/typescript/package-lock.json"), "package.json");
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("typescript");
    let program = kept.join("node_modules/typescript/bin/tsc");
    let pinned = fs::read(&lock).unwrap();
    if fs::read(kept.join("package-lock.json")).ok() == Some(pinned) && program.exists() {
        return Some(program);
    }
    // Beside it, and then in its place: several tests may want it at once.
    let fresh = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::copy(&lock, fresh.path().join("package-lock.json")).unwrap();
    fs::copy(here("clients/typescript").join(package), fresh.path().join(package)).unwrap();
    tried(fresh.path(), "npm", &["ci", "--ignore-scripts", "--no-audit", "--no-fund"])?;
    let _ = fs::remove_dir_all(&kept);
    let _ = fs::rename(fresh.path(), &kept);
    Some(program)
}

/// Runs what has to succeed.
fn node(folder: &Path, address: &str, words: &[&str]) -> String {
    let output = Command::new("node")
        .args(words)
        .current_dir(folder)
        .env("GRISTMILL_URL", format!("http://{address}"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}{errors}");
    said
}

fn compile(compiler: &Path, folder: &Path) {
    node(folder, "", &[compiler.to_str().unwrap(), "-p", "."]);
}

/// The client, compiled in this place.
fn client(place: &Place, compiler: &Path) -> PathBuf {
    let (from, to) = (here("clients/typescript"), place.path("client"));
    for folder in ["src", "test"] {
        fs::create_dir_all(to.join(folder)).unwrap();
        for file in fs::read_dir(from.join(folder)).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), to.join(folder).join(file.file_name())).unwrap();
        }
    }
    for file in ["package.json", "tsconfig.json"] {
        fs::copy(from.join(file), to.join(file)).unwrap();
    }
    compile(compiler, &to);
    to
}

/// A program of this text beside the compiled client; none where there is no compiler.
pub(crate) fn worker(place: &Place, text: &str) -> Option<PathBuf> {
    let client = client(place, &compiler()?);
    let folder = place.path("node_modules");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(&client, folder.join("gristmill")).unwrap();
    place.write("worker.mjs", text);
    Some(place.path("worker.mjs"))
}

#[test]
fn the_typescript_client_passes_its_tests() {
    let Some(compiler) = compiler() else { return };
    let place = Place::new();
    let client = client(&place, &compiler);
    let (_serve, address) = started(&place, &["serve"]);
    let said = node(&client, &address, &["--test", "test/service.test.mjs"]);
    assert!(said.contains("\n# pass 21\n"), "{said}");
}

const PROJECT: &str = r#"{
  "compilerOptions": {
    "target": "ES2022", "module": "NodeNext", "moduleResolution": "NodeNext",
    "lib": ["ES2022", "DOM"], "types": [], "strict": true, "exactOptionalPropertyTypes": true,
    "noUncheckedIndexedAccess": true, "noUnusedLocals": true, "noUnusedParameters": true
  },
  "include": ["*.ts"]
}"#;

/// What the contract in both languages says: put as one type, handled as another.
const GENERATED: &str = r#"
import { Client, Refused, Worker } from "gristmill";
import { Emails, PriceUpdates } from "./queues.js";

// @ts-expect-error: a number is no int64
export const number: Emails = { to: "ada", user_id: 1, parts: [] };
// @ts-expect-error: a field is missing
export const missing: Emails = { to: "ada", user_id: 1n };
// @ts-expect-error: there is no such field
export const unknown: PriceUpdates = { urgent: true, when: 1 };

function same(found: unknown, wanted: unknown): void {
  const shown = (value: unknown) =>
    JSON.stringify(value, (_, inner) =>
      typeof inner === "bigint" ? `${inner}n` : inner instanceof Uint8Array ? [...inner] : inner,
    );
  if (shown(found) !== shown(wanted)) throw new Error(`${shown(found)}, not ${shown(wanted)}`);
}

const client = new Client();
const worker = new Worker(client);
const at = new Date("2026-01-02T03:04:05.006Z");
const mail: Emails = { to: "ada", user_id: 2n ** 62n, parts: [Uint8Array.of(255, 0), new Uint8Array()], at };
same((await Emails.put(client, mail, { key: "ada" })).outcome, "enqueued");
same((await PriceUpdates.put(client, { urgent: true, prices: [1, 2.5, Infinity] })).outcome, "enqueued");
const seen: [Emails, string | undefined][] = [];
const prices: PriceUpdates[] = [];
const ends = () => seen.length + prices.length === 2 && worker.stop();
Emails.handle(worker, (email, task) => {
  seen.push([email, task.key]);
  ends();
});
PriceUpdates.handle(worker, (update) => {
  prices.push(update);
  ends();
});
await worker.run();
same(seen, [[mail, "ada"]]);
same(prices[0]?.prices?.slice(0, 2), [1, 2.5]);
same(prices[0]?.prices?.[2] === Infinity, true);
try {
  await client.put("emails", { to: "ada" });
} catch (error) {
  same(error instanceof Refused && error.code, "does_not_fit");
  console.log("as the contract says");
}
"#;

#[test]
fn generated_typescript_speaks_the_contract() {
    let contract = here("crates/gristmill-contract/tests/it");
    let place = Place::new();
    place.write("queues.yaml", fs::read(contract.join("queues.yaml")).unwrap());
    place.ok(&["contract", "register", "queues.yaml"]);
    place.ok(&["generate", "--lang", "typescript", "--out", "."]);
    place.ok(&["generate", "--lang", "typescript", "--out", ".", "--check"]);
    // The same bytes everywhere.
    let golden = fs::read_to_string(contract.join("queues.ts")).unwrap();
    assert_eq!(fs::read_to_string(place.path("queues.ts")).unwrap(), golden);
    let Some(compiler) = compiler() else { return };
    let client = client(&place, &compiler);
    fs::create_dir(place.path("node_modules")).unwrap();
    std::os::unix::fs::symlink(&client, place.path("node_modules/gristmill")).unwrap();
    place.write("package.json", r#"{"type": "module"}"#);
    place.write("tsconfig.json", PROJECT);
    place.write("check.ts", GENERATED);
    // What the README shows compiles as it stands.
    let readme = fs::read_to_string(here("clients/typescript/README.md")).unwrap();
    let blocks: Vec<&str> = readme.split("```ts\n").skip(1).collect();
    assert_eq!(blocks.len(), 2);
    for (number, block) in blocks.iter().enumerate() {
        let block = block.split("```").next().unwrap();
        place.write(&format!("readme{number}.ts"), block);
    }
    compile(&compiler, &place.path(""));
    let (_serve, address) = started(&place, &["serve"]);
    let said = node(&place.path(""), &address, &["check.js"]);
    assert_eq!(said.trim(), "as the contract says");
}

#[test]
fn a_project_in_typescript_handles_what_up_is_given() {
    let place = Place::new();
    place.write("mine.yaml", OWN);
    place.ok(&["init", "own", "--lang", "typescript", "--contract", "mine.yaml"]);
    let own = place.path("own");
    let package = fs::read_to_string(own.join("package.json")).unwrap();
    let package: serde_json::Value = serde_json::from_str(&package).unwrap();
    assert_eq!(package["name"], "own");
    let client_of_ours = package["dependencies"]["gristmill"].as_str().unwrap();
    let client_of_ours = Path::new(client_of_ours.strip_prefix("file:").unwrap());
    assert!(client_of_ours.join("package-lock.json").is_file(), "{client_of_ours:?}");
    let Some(compiler) = compiler() else { return };
    // The clone's own folder is left as it is: the client is compiled beside it.
    let client = client(&place, &compiler);
    let place = place.within("own");
    place.ok(&["generate", "--lang", "typescript", "--out", "src", "queues.yaml", "--check"]);
    place.ok(&["config", "check"]);
    fs::create_dir(own.join("node_modules")).unwrap();
    std::os::unix::fs::symlink(&client, own.join("node_modules/gristmill")).unwrap();
    compile(&compiler, &own);
    let (_up, address) = started(&place, &["up"]);
    let mut worker = Command::new("node");
    worker.arg("dist/worker.js").current_dir(&own);
    let sale = "price-updates 1: { type: 'sale', name: 'Lamp', map: [ 7n, 8n ] }";
    handled_by(&place, &address, &mut worker, [sale, "nightly 2: {}"]);
}

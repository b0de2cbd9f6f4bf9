//! The Python client's own tests, against a service of this build.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::http::started;
use crate::place::Place;
use crate::typescript;

#[test]
fn the_python_client_passes_its_tests() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("NOT RUN: python3 is missing");
        return;
    }
    let place = Place::new();
    let (_serve, address) = started(&place, &["serve"]);
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python");
    let output = Command::new("python3")
        .args(["-m", "unittest", "discover", "tests"])
        .current_dir(client)
        .env("GRISTMILL_URL", format!("http://{address}"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("\nRan 15 tests"), "{said}");
}

/// With a token that may no more than work and put, a worker does its work; without one
/// nobody is let in.
const WITH_A_TOKEN: &str = r#"
from gristmill import Client, Problem, Worker
try:
    Client(token="gristmill_" + "0" * 64, patience=0.1).put("emails", 1)
    raise SystemExit("it was taken")
except Problem as problem:
    assert problem.code == "unauthorized", problem
client, seen = Client(), []
worker = Worker(client, lease="1s")
assert client.put("emails", {"to": "ada"}).enqueued
@worker.task("emails")
def handle(task):
    import time
    # Longer than its lease: the heartbeat shows the token as well.
    until = time.monotonic() + 2
    while time.monotonic() < until and not task.cancelled:
        time.sleep(0.05)
    seen.append((task.payload, task.cancelled))
    worker.stop()
worker.run()
assert seen == [({"to": "ada"}, False)], seen
assert worker.counts["done"] == 1, worker.counts
try:
    client.stats()
    raise SystemExit("it was shown")
except Problem as problem:
    assert problem.code == "forbidden", problem
"#;

#[test]
fn a_python_worker_shows_its_token() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("NOT RUN: python3 is missing");
        return;
    }
    let place = Place::with(&[&["emails"]]);
    let token = place.ok(&["token", "create", "w", "--scope", "work,put", "--queue", "emails"]);
    let (_serve, address) = started(&place, &["serve"]);
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python");
    let output = Command::new("python3")
        .args(["-c", WITH_A_TOKEN])
        .env("GRISTMILL_URL", format!("http://{address}"))
        .env("GRISTMILL_TOKEN", token.trim())
        .env("PYTHONPATH", client)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// Kills the service under clients, and compares what they were told with what ran.
fn kill_the_service(kills: &str, typescript: Option<PathBuf>) {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("NOT RUN: python3 is missing");
        return;
    }
    let place = Place::new();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("python3")
        .arg(here.join("tests/it/killed.py"))
        .args([env!("CARGO_BIN_EXE_gristmill"), kills])
        .arg(place.path(""))
        .arg(here.join("../../clients/python"))
        .args(typescript)
        .env_remove("GRISTMILL_STORE")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    println!("{}", String::from_utf8_lossy(&output.stdout));
}

/// A worker in TypeScript that writes down what it runs.
const KILLED: &str = r#"
import { appendFileSync } from "node:fs";
import { Worker } from "gristmill";
const worker = new Worker(undefined, { processors: 4, lease: "2s" });
worker.task("work", async (task) => appendFileSync("ran", JSON.stringify(task.payload) + "\n"));
process.on("SIGTERM", () => worker.stop());
await worker.run();
"#;

#[test]
fn what_was_acknowledged_survives_a_killed_service() {
    kill_the_service("3", None);
}

#[test]
#[ignore = "long: twenty kills"]
fn what_was_acknowledged_survives_twenty_kills() {
    let place = Place::new();
    let worker = typescript::worker(&place, KILLED);
    kill_the_service("20", worker);
}

/// What the contract in both languages says: put by one class, handled as another.
const GENERATED: &str = r#"
import sys, threading
from datetime import datetime, timezone
from gristmill import Client, Refused, Worker
from queues import Emails, PriceUpdates, on_emails
client, worker, seen = Client(), Worker(), []
mail = Emails(to="ada", user_id=2**62, parts=[b"\xff\x00", b""], at=datetime(2026, 1, 2, 3, 4, 5, 600, timezone.utc))
assert mail.put(client, key="ada").enqueued
assert PriceUpdates(urgent=True).put(client).enqueued
@on_emails(worker)
def handle(email, task):
    seen.append((email, task.key))
    worker.stop()
worker.run()
assert seen == [(mail, "ada")], seen
try:
    client.put("emails", {"to": "ada"})
    raise SystemExit("it was taken")
except Refused as refused:
    assert refused.code == "does_not_fit", refused
print("as the contract says")
"#;

#[test]
fn generated_python_speaks_the_contract() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("NOT RUN: python3 is missing");
        return;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let contract = here.join("../gristmill-contract/tests/it");
    let place = Place::new();
    place.write("queues.yaml", std::fs::read(contract.join("queues.yaml")).unwrap());
    place.ok(&["contract", "register", "queues.yaml"]);
    place.ok(&["generate", "--lang", "python", "--out", "."]);
    place.ok(&["generate", "--lang", "python", "--out", ".", "--check"]);
    // The same bytes everywhere.
    let golden = std::fs::read_to_string(contract.join("queues.py")).unwrap();
    assert_eq!(std::fs::read_to_string(place.path("queues.py")).unwrap(), golden);
    let (_serve, address) = started(&place, &["serve"]);
    let output = Command::new("python3")
        .args(["-c", GENERATED])
        .current_dir(place.path(""))
        .env("GRISTMILL_URL", format!("http://{address}"))
        .env("PYTHONPATH", here.join("../../clients/python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

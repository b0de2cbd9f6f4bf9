//! New projects: that they are whole, and that they run.

use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::http::started;
use crate::place::{Place, Running, eventually};

#[test]
fn a_project_of_programs_runs_as_it_is() {
    let place = Place::new();
    let said = place.ok(&["init", "--exec", "mail"]);
    assert!(said.contains("cd mail && gristmill up"), "{said}");
    let place = place.within("mail");
    place.ok(&["config", "check"]);
    place.ok(&["contract", "check", "queues.yaml"]);
    let mut up = place.start(&["up"]);
    Running::until(&mut up.stdout, r#"mail 1, attempt 1: {"to":"ada@example.org","user_id":1"#);
    place.ok(&["put", "emails", r#"{"to":"grace@example.org","user_id":5}"#]);
    Running::until(&mut up.stdout, r#"mail 3, attempt 1: {"to":"grace@example.org","user_id":5}"#);
    up.signal(Signal::TERM);
    assert_eq!(up.end().0, 0);
    assert_eq!(place.stats("digests")["total"], 0);
}

#[test]
fn nothing_is_written_over() {
    let place = Place::new();
    place.ok(&["init", "mail"]);
    let manifest = std::fs::read_to_string(place.path("mail/Cargo.toml")).unwrap();
    assert!(manifest.contains("name = \"mail\""), "{manifest}");
    // A version would not build: it is on no registry.
    let (before, rest) = manifest.split_once("gristmill = { path = \"").unwrap();
    assert!(before.ends_with("[dependencies]\n"), "{manifest}");
    assert!(Path::new(rest.split_once('"').unwrap().0).join("Cargo.toml").is_file(), "{manifest}");
    let answer = place.run(&["init", "--exec", "mail"]);
    assert_eq!(answer.code, 3);
    assert!(answer.stderr.contains("mail is not empty"), "{answer:?}");
}

/// Somebody's own contract, with names that code has its own use for.
pub(crate) const OWN: &str = "\
queues:
  - id: 7
    name: price-updates
    doc: \"Prices of {name}, as they are.\"
    fields:
      - {name: type, type: string}
      - {name: name, type: string}
      - {name: map, type: \"[]int64\"}
      - {name: userId, type: int64?}
    settings:
      max_attempts: unlimited
  - id: 8
    name: nightly
";

#[test]
fn a_project_out_of_ones_own_contract_has_a_program_for_each_queue() {
    let place = Place::new();
    std::fs::write(place.path("mine.yaml"), OWN).unwrap();
    place.ok(&["init", "--exec", "own", "--contract", "mine.yaml"]);
    let place = place.within("own");
    assert_eq!(std::fs::read_to_string(place.path("queues.yaml")).unwrap(), OWN);
    place.ok(&["config", "check"]);
    let readme = std::fs::read_to_string(place.path("README.md")).unwrap();
    let payload = r#"{"map":[1],"name":"text","type":"text"}"#;
    assert!(readme.contains(&format!("gristmill put price-updates '{payload}'")), "{readme}");
    // Whoever is quicker than `up` makes the queues as the contract has them.
    let answer = place.run(&["put", "price-updates", "{}", "--create"]);
    assert!(answer.code == 3 && answer.stderr.contains("type: is missing"), "{answer:?}");
    place.ok(&["queue", "add", "nightly", "lease=90s"]);
    let queues = place.json(&["queue", "list"]);
    assert_eq!((&queues[0]["number"], &queues[1]["number"]), (&json!(7), &json!(8)), "{queues}");
    let other = ["--store", "sqlite://other.db", "put", "price-updates", "{}", "--create"];
    assert_eq!(place.ok(&other).trim(), "enqueued 1");
    let mut up = place.start(&["up"]);
    Running::until(&mut up.stdout, "Stop with Ctrl-C");
    place.ok(&["put", "price-updates", payload]);
    // Its fields come in the contract's order, and none that was not said.
    let handed = r#"price-updates 1: {"type":"text","name":"text","map":[1]}"#;
    Running::until(&mut up.stdout, handed);
    place.ok(&["put", "nightly", "{}"]);
    Running::until(&mut up.stdout, "nightly 2: {}");
    up.signal(Signal::TERM);
    assert_eq!(up.end().0, 0);
}

/// Puts a task of each queue and sees this worker of the project in `own` handle both.
pub(crate) fn handled_by(place: &Place, address: &str, worker: &mut Command, shown: [&str; 2]) {
    worker.env("GRISTMILL_URL", format!("http://{address}"));
    worker.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut worker = Running::of(worker);
    let sale = r#"{"type":"sale","name":"Lamp","map":[7,8]}"#;
    for (queue, payload, shown) in [("price-updates", sale, shown[0]), ("nightly", "{}", shown[1])]
    {
        place.ok(&["put", queue, payload]);
        Running::until(&mut worker.stdout, shown);
    }
    worker.signal(Signal::TERM);
    let (code, _, errors) = worker.end();
    assert_eq!(code, 0, "{errors}");
    for queue in ["price-updates", "nightly"] {
        assert_eq!(place.stats(queue)["total"], 0, "{errors}");
    }
}

#[test]
fn a_project_in_python_handles_what_up_is_given() {
    let place = Place::new();
    place.write("mine.yaml", OWN);
    let said = place.ok(&["init", "own", "--lang", "python", "--contract", "mine.yaml"]);
    assert!(said.contains("cd own && gristmill up"), "{said}");
    let place = place.within("own");
    assert_eq!(std::fs::read_to_string(place.path("queues.yaml")).unwrap(), OWN);
    // What it says of itself is true: the clone is there, the code is of this contract.
    let needs = std::fs::read_to_string(place.path("requirements.txt")).unwrap();
    let client = needs.lines().last().unwrap();
    assert!(Path::new(client).join("pyproject.toml").is_file(), "{needs}");
    place.ok(&["generate", "--lang", "python", "--out", ".", "queues.yaml", "--check"]);
    place.ok(&["config", "check"]);
    if Command::new("python3").arg("--version").output().is_err() {
        println!("NOT RUN: python3 is missing");
        return;
    }
    let (_up, address) = started(&place, &["up"]);
    let mut worker = Command::new("python3");
    worker.arg("worker.py").current_dir(place.path(""));
    worker.env("PYTHONPATH", client).env("PYTHONDONTWRITEBYTECODE", "1");
    let sale = "price-updates 1: PriceUpdates(type='sale', name='Lamp', map=[7, 8], userId=None)";
    handled_by(&place, &address, &mut worker, [sale, "nightly 2: Nightly()"]);
}

#[test]
fn the_sample_has_a_worker_in_each_language() {
    let place = Place::new();
    for (language, worker) in [("python", "py/worker.py"), ("typescript", "ts/src/worker.ts")] {
        let folder = worker.split('/').next().unwrap();
        place.ok(&["init", folder, "--lang", language]);
        let worker = std::fs::read_to_string(place.path(worker)).unwrap();
        assert!(worker.contains("emails") && worker.contains("digests"), "{worker}");
    }
    let answer = place.run(&["init", "x", "--lang", "python", "--exec"]);
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(!place.path("x").exists());
}

#[test]
fn a_contract_that_cannot_be_read_begins_no_project() {
    let place = Place::new();
    std::fs::write(place.path("mine.yaml"), "queues:\n  - id: 1\n").unwrap();
    let answer = place.run(&["init", "own", "--contract", "mine.yaml"]);
    assert!(answer.code != 0 && answer.stderr.contains("mine.yaml:2"), "{answer:?}");
    assert!(!place.path("own").exists());
}

/// As below, out of a contract of one's own: a stub for each queue, which compiles.
#[test]
#[ignore = "compiles a project of its own"]
fn long_a_project_out_of_ones_own_contract_compiles_and_runs() {
    let clone = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let place = Place::new();
    std::fs::write(place.path("mine.yaml"), OWN).unwrap();
    place.ok(&["init", "own", "--contract", "mine.yaml"]);
    std::fs::copy(clone.join("Cargo.lock"), place.path("own/Cargo.lock")).unwrap();
    let place = place.within("own");
    place.ok(&["put", "price-updates", r#"{"type":"sale","name":"Lamp","map":[7,8]}"#, "--create"]);
    let output = Command::new("cargo")
        .args(["run", "--offline", "--", "drain"])
        .current_dir(place.path(""))
        .env("CARGO_TARGET_DIR", clone.join("target/init"))
        .env("RUSTFLAGS", "-D warnings")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("type: \"sale\", name: \"Lamp\", map: [7, 8], user_id: None"), "{said}");
    assert!(said.contains("1 done, 0 ended otherwise"), "{said}");
}

/// The whole way: a fresh crate, compiled, with tasks put from Rust and from
/// the command line, handled typed, a batch settled in parts.
#[test]
#[ignore = "compiles a project of its own"]
fn long_a_project_in_rust_compiles_and_runs() {
    let clone = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let place = Place::new();
    place.ok(&["init", "mail"]);
    // What we were built from is on this machine already.
    std::fs::copy(clone.join("Cargo.lock"), place.path("mail/Cargo.lock")).unwrap();
    let place = place.within("mail");
    let cargo = |words: &[&str]| {
        let output = Command::new("cargo")
            .args(words)
            .current_dir(place.path(""))
            .env("CARGO_TARGET_DIR", clone.join("target/init"))
            .env("RUSTFLAGS", "-D warnings")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        said
    };
    cargo(&["run", "--offline", "--", "put"]);
    place.ok(&["put", "emails", r#"{"to":"cli@example.org","user_id":7}"#]);
    let said = cargo(&["run", "--offline", "--", "drain"]);
    for wanted in
        ["ada@example.org: Welcome", "cli@example.org: no subject", "grace@example.org: Your"]
    {
        assert!(said.contains(wanted), "{said}");
    }
    let failed: Value = serde_json::from_str(&place.ok(&["failed", "--json"])).unwrap();
    assert_eq!(failed[0]["payload"]["to"], "nowhere");
    // Asked for again after 100 ms: a drain that is quick ends before that, another has it.
    eventually("it is due again, or done", || {
        let stats = place.stats("emails");
        stats["ready"] == 1 || stats["total"] == stats["failed"]
    });
    let said = said + &cargo(&["run", "--offline", "--", "drain"]);
    assert!(said.contains("later@example.org: Welcome"), "{said}");
}

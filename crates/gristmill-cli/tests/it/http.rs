//! `up` and `serve` over HTTP: where they listen, what they say when they cannot, and
//! a task from curl to its handler.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Place, Running, eventually};

/// A service at a port of its own, and that port.
pub(crate) fn started(place: &Place, words: &[&str]) -> (Running, String) {
    let mut command = place.command(words);
    command.env("GRISTMILL_LISTEN", "127.0.0.1:0");
    let mut running = Running::of(&mut command);
    let seen = Running::until(&mut running.stdout, "  http ");
    let at = seen.last().unwrap().split("http://").nth(1).unwrap();
    let address = at.split(' ').next().unwrap().to_owned();
    Running::until(&mut running.stdout, "Stop with Ctrl-C");
    (running, address)
}

/// One request; the status and the body.
pub(crate) fn ask(address: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

#[test]
fn up_serves_http_beside_its_handlers() {
    let place = Place::new();
    place.write("gristmill.yaml", "queues:\n  - {name: emails, exec: 'cat > got'}\n");
    let (up, address) = started(&place, &["up"]);
    let (status, said) =
        ask(&address, "POST", "/v1/queues/emails/tasks", r#"{"payload":{"to":"ada"}}"#);
    assert_eq!(status, 201, "{said}");
    eventually("the task is done", || place.stats("emails")["counters"]["done"] == 1);
    assert_eq!(std::fs::read_to_string(place.path("got")).unwrap(), r#"{"to":"ada"}"#);
    let (_, metrics) = ask(&address, "GET", "/metrics", "");
    assert!(metrics.contains("gristmill_done_total{queue=\"emails\"} 1"), "{metrics}");
    assert!(
        metrics.contains("queue_tasks_in_progress{queue=\"emails\",queue_num=\"10000\"} 0"),
        "{metrics}"
    );
    up.signal(Signal::TERM);
    let (code, _, stderr) = up.end();
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn serve_runs_no_handler_and_needs_no_file() {
    let place = Place::with(&[&["emails", "lease=1s"]]);
    let (serve, address) = started(&place, &["serve"]);
    ask(&address, "POST", "/v1/queues/emails/tasks", r#"{"payload":1}"#);
    let claim = r#"{"queues":["emails"],"worker":"w"}"#;
    let claimed: Value =
        serde_json::from_str(&ask(&address, "POST", "/v1/claims", claim).1).unwrap();
    assert_eq!(claimed["tasks"][0]["payload"], 1);
    // Nobody else is there to take the task back when its worker is gone.
    eventually("the lease ends", || place.stats("emails")["counters"]["expired"] == 1);
    drop(serve);
    place.write("gristmill.yaml", "queues:\n  - {name: emails, exec: 'touch ran'}\n");
    let (serve, address) = started(&place, &["serve"]);
    let claimed: Value =
        serde_json::from_str(&ask(&address, "POST", "/v1/claims", claim).1).unwrap();
    assert_eq!(claimed["tasks"][0]["attempt"], 2);
    assert!(!place.path("ran").exists());
    drop(serve);
}

#[test]
fn a_port_that_is_taken_is_a_clear_error() {
    let place = Place::new();
    place.write("gristmill.yaml", "queues:\n  - {name: emails, exec: cat}\n");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = place.command(&["up"]).env("GRISTMILL_LISTEN", &address).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in [&*address, "in use", "listen:", "GRISTMILL_LISTEN", "off"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!place.path("gristmill.db").exists(), "a start that failed left a store");
}

#[test]
fn a_dashboard_may_only_show() {
    let place = Place::new();
    for (said, shows) in [("", false), ("dashboard: on\n", false), ("dashboard: read-only\n", true)]
    {
        place.write("gristmill.yaml", format!("{said}queues:\n  - {{name: emails}}\n"));
        let (_up, address) = started(&place, &["up"]);
        let (status, page) = ask(&address, "GET", "/queues/emails", "");
        assert_eq!((status, page.contains("method=\"post\"")), (200, !shows), "{said}: {page}");
        assert_eq!(page.contains("read only"), shows, "{said}: {page}");
    }
}

#[test]
fn where_to_listen_is_checked() {
    let place = Place::new();
    place.write("gristmill.yaml", "queues:\n  - {name: emails, exec: cat}\n");
    let output = place.command(&["up"]).env("GRISTMILL_LISTEN", "nonsense").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("an IP address"), "{said}");
    place.write("gristmill.yaml", "listen: everywhere\nqueues:\n  - {name: emails, exec: cat}\n");
    let answer = place.run(&["config", "check"]);
    assert!(answer.stderr.contains("gristmill.yaml:1:9") && answer.code == 2, "{answer:?}");
    place.write("gristmill.yaml", "listen: off\nqueues:\n  - {name: emails, exec: cat}\n");
    let answer = place.run(&["serve"]);
    assert!(answer.code == 2 && answer.stderr.contains("nothing to serve"), "{answer:?}");
}

#[test]
fn systemd_is_told_and_lines_can_be_json() {
    let place = Place::new();
    place.write("gristmill.yaml", "queues:\n  - {name: emails, exec: 'exit 65'}\n");
    let socket = std::os::unix::net::UnixDatagram::bind(place.path("notify")).unwrap();
    let mut command = place.command(&["up", "--log", "json"]);
    command.env("NOTIFY_SOCKET", place.path("notify"));
    let mut up = Running::of(&mut command);
    Running::until(&mut up.stdout, "Stop with Ctrl-C");
    let mut told = [0; 64];
    let length = socket.recv(&mut told).unwrap();
    assert_eq!(&told[..length], b"READY=1");
    place.ok(&["put", "emails", "1"]);
    let lines = Running::until(&mut up.stderr, "emails #1 failed");
    let last: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert!(last["message"].as_str().unwrap().starts_with("emails #1 failed"), "{last}");
    up.signal(Signal::TERM);
    let length = socket.recv(&mut told).unwrap();
    assert_eq!(&told[..length], b"STOPPING=1");
    let (code, _, stderr) = up.end();
    assert_eq!(code, 0, "{stderr}");
    for line in stderr.lines() {
        let said: Value = serde_json::from_str(line).expect(line);
        assert!(said["at"].is_string() && said["level"].is_string(), "{line}");
    }
}

#[test]
fn a_worker_can_be_watched() {
    let place = Place::with(&[&["emails"]]);
    let words = ["work", "emails", "--exec", "cat", "--metrics", "127.0.0.1:0"];
    let mut work = place.start(&words);
    let seen = Running::until(&mut work.stderr, "metrics at");
    let at = seen.last().unwrap().split("http://").nth(1).unwrap();
    let address = at.split('/').next().unwrap().to_owned();
    place.ok(&["put", "emails", "1"]);
    eventually("it is done", || {
        ask(&address, "GET", "/metrics", "").1.contains("gristmill_done_total{queue=\"emails\"} 1")
    });
    assert_eq!(ask(&address, "GET", "/readyz", "").0, 200);
    // To be looked at, and nothing else.
    assert_eq!(ask(&address, "GET", "/v1/stats", "").0, 404);
    let answer = place.run(&["work", "emails", "--exec", "cat", "--metrics", "0.0.0.0:0"]);
    assert!(answer.code == 1 && answer.stderr.contains("token create"), "{answer:?}");
}

/// Names of series in a text.
fn series(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    let words = text.split(|c: char| !is_part(c)).map(str::to_owned);
    let ours = |word: &String| word.starts_with("gristmill_") || word.starts_with("queue_");
    words.filter(|word| ours(word) && !word.ends_with('_') && word != "queue_num").collect()
}

#[test]
fn rules_and_the_dashboard_name_series_that_exist() {
    let place = Place::new();
    let config = "metrics: 127.0.0.1:0\nmanager: true\nqueues:\n  - {name: emails, exec: 'exit 65', settings: {max_wait: 1m}}\n";
    place.write("gristmill.yaml", config);
    let mut up = place.start(&["up"]);
    let seen = Running::until(&mut up.stderr, "metrics at");
    let at = seen.last().unwrap().split("http://").nth(1).unwrap();
    let address = at.split('/').next().unwrap().to_owned();
    place.ok(&["put", "emails", "1"]);
    let metrics = || ask(&address, "GET", "/metrics", "").1;
    let failed = "gristmill_attempts_total{queue=\"emails\",outcome=\"fail\"} 1";
    eventually("it failed", || metrics().contains(failed));
    eventually("the manager spoke", || metrics().contains("gristmill_manager_silent_seconds"));
    let text = metrics();
    for part in [
        "gristmill_wait_seconds_count{queue=\"emails\"} 1",
        "gristmill_run_seconds_count{queue=\"emails\"} 1",
        "gristmill_store_call_seconds_bucket{verb=\"settle\",le=\"+Inf\"} 1",
        "queue_job_processor_cycle_duration_seconds_count{queue=\"emails\",queue_num=\"10000\"} 1",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let mut known: BTreeSet<String> = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        known.insert(name.to_owned());
        if kind == "histogram" {
            known.extend(["_bucket", "_sum", "_count"].map(|part| format!("{name}{part}")));
        }
    }
    // Only a server has these.
    known.extend(
        ["queue_oldest_transaction_seconds", "gristmill_store_connections"].map(str::to_owned),
    );
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for file in ["operations/alerts.yaml", "operations/dashboard.json", "operations.md"] {
        let text = std::fs::read_to_string(docs.join(file)).unwrap();
        let strange: Vec<_> = series(&text).difference(&known).cloned().collect();
        assert!(strange.is_empty(), "{file} names what is not there: {strange:?}");
    }
    up.signal(Signal::TERM);
    assert_eq!(up.end().0, 0);
}

#[test]
fn an_operation_goes_on_after_a_kill() {
    let place = Place::with(&[&["emails"]]);
    let lines: String = (0..10_000).map(|n| format!("{{\"payload\":{n}}}\n")).collect();
    place.run_with(&["put", "emails", "--from", "-"], lines.as_bytes());
    let (serve, address) = started(&place, &["serve"]);
    let asked = r#"{"filter":{"queue":"emails"},"by":"ada"}"#;
    let (status, said) = ask(&address, "POST", "/v1/tasks/cancel", asked);
    assert_eq!(status, 202, "{said}");
    let begun: Value = serde_json::from_str(&said).unwrap();
    let id = begun["id"].as_str().unwrap();
    let look = |address: &str| -> Value {
        let said = ask(address, "GET", &format!("/v1/operations/{id}"), "").1;
        serde_json::from_str(&said).unwrap()
    };
    eventually("it is under way", || look(&address)["moved"].as_u64().unwrap() > 0);
    serve.kill();
    assert_eq!(place.json(&["operations", "show", id])["state"], "running", "it was too fast");
    // Put after it began.
    place.ok(&["put", "emails", "1"]);
    let (serve, address) = started(&place, &["serve"]);
    eventually("it is done", || look(&address)["state"] == "done");
    let over = look(&address);
    assert_eq!(over["began_at"], begun["began_at"]);
    // A step that was under way at the kill may be missing in the count.
    let moved = over["moved"].as_u64().unwrap();
    assert!((9_500..=10_000).contains(&moved), "{over}");
    let stats = place.stats("emails");
    assert_eq!((&stats["ready"], &stats["counters"]["cancelled"]), (&1.into(), &10_000.into()));
    let table = place.ok(&["operations"]);
    assert!(table.contains(id) && table.contains("done"), "{table}");
    let answer = place.run(&["operations", "stop", "none"]);
    assert!(answer.code == 3 && answer.stderr.contains("no operation 'none'"), "{answer:?}");
    drop(serve);
}

#[test]
#[ignore = "long: two thousand silent and two thousand dribbling connections, a gigabyte"]
fn bad_clients_do_not_harm_others() {
    let place = Place::with(&[&["emails"]]);
    let (serve, address) = started(&place, &["serve"]);
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/attacked.py");
    let output = std::process::Command::new("python3")
        .arg(script)
        .args([address.split(':').next_back().unwrap(), &serve.pid().to_string()])
        .output();
    let Ok(output) = output else {
        println!("NOT RUN: python3 is missing");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{said}");
}

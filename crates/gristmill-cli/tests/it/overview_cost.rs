//! What an overview that somebody leaves open costs the service, beside a million tasks and
//! a worker at work. For the long form.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::http::{ask, started};
use crate::place::{Place, Running};

/// Queues, and tasks on each.
const QUEUES: usize = 10;
const TASKS: usize = 100_000;
/// How long it is looked at.
const LOOKS: Duration = Duration::from_secs(60);

/// What a process has used of the cores.
fn used(running: &Running) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", running.pid())).unwrap();
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap().split(' ').collect();
    // Hundredths of a second, of user and system.
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// Puts ten tasks a second until told to stop.
fn load(address: String, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        ask(&address, "POST", "/v1/queues/load/tasks", r#"{"payload":1}"#);
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Hears what happens, as a page does.
fn listen(address: &str, heard: Arc<AtomicBool>) {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /live/events HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        if line.starts_with("event:") {
            heard.store(true, Ordering::Relaxed);
        }
    }
}

/// The page, and its charts now and then, asked for as `app.js` and `charts.js` do: a second
/// and a half after something happened, and after four and a half in any case.
fn look(address: &str, heard: &AtomicBool) -> u32 {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut get = |path: &str| {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nhx-request: true\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        stream = TcpStream::connect(address).unwrap();
    };
    let (began, mut charts, mut looks) = (Instant::now(), None::<Instant>, 0);
    while began.elapsed() < LOOKS {
        heard.store(false, Ordering::Relaxed);
        get("/");
        looks += 1;
        if charts.is_none_or(|last| last.elapsed() > Duration::from_secs(5)) {
            get("/live/minutes?back=1h&step=1m");
            charts = Some(Instant::now());
        }
        let last = Instant::now();
        std::thread::sleep(Duration::from_millis(1500));
        while !heard.load(Ordering::Relaxed) && last.elapsed() < Duration::from_millis(4500) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    looks
}

#[test]
#[ignore = "long: puts a million tasks and looks for two minutes"]
fn long_an_open_overview_costs_little_beside_a_million_tasks() {
    let place = Place::new();
    let line = format!("{{\"order\":1,\"note\":\"{}\"}}\n", "x".repeat(70));
    place.write("tasks.ndjson", line.repeat(TASKS));
    for n in 0..QUEUES {
        place.ok(&["queue", "add", &format!("q{n}")]);
        place.ok(&["put", &format!("q{n}"), "--from", "tasks.ndjson", "--quiet"]);
    }
    place.ok(&["queue", "add", "load"]);
    let mut worker = place.command(&["work", "load", "--exec", "true"]);
    let mut worker = worker.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (serve, address) = started(&place, &["serve"]);
    let stop = Arc::new(AtomicBool::new(false));
    let putting = std::thread::spawn({
        let (address, stop) = (address.clone(), stop.clone());
        move || load(address, stop)
    });
    // First without anybody who looks: what the load itself costs.
    let before = used(&serve);
    std::thread::sleep(LOOKS);
    let load = used(&serve) - before;
    let heard = Arc::new(AtomicBool::new(false));
    std::thread::spawn({
        let (address, heard) = (address.clone(), heard.clone());
        move || listen(&address, heard)
    });
    let before = used(&serve);
    let looks = look(&address, &heard);
    let both = used(&serve) - before;
    stop.store(true, Ordering::Relaxed);
    putting.join().unwrap();
    worker.kill().unwrap();
    worker.wait().unwrap();
    let share = |spent: Duration| spent.as_secs_f64() / LOOKS.as_secs_f64() * 100.0;
    eprintln!(
        "{looks} looks in {LOOKS:?}: {:.2} % of a core with the load, which alone costs {:.2} %",
        share(both),
        share(load)
    );
    assert!(looks > 30, "{looks}: nothing was heard");
    assert!(share(both.saturating_sub(load)) < 3.0);
}

//! Handlers that are URLs: what is posted, what answers make of tasks, and that nobody
//! on the other end can hold a worker up.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Place, Running, eventually};
use crate::stream::blocks;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// What was asked of the receiver.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    connection: usize,
}

/// A receiver that answers what each payload says: `{"status","headers","body"}`, or
/// `{"then":"hang"}` or `{"then":"endless"}`.
pub(crate) struct Receiver {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Connections that the other side closed.
    closed: Arc<Mutex<Vec<usize>>>,
}

impl Receiver {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (asked, closed) = (Arc::<Mutex<Vec<Asked>>>::default(), Arc::<Mutex<_>>::default());
        let receiver = Receiver { address, asked: asked.clone(), closed: closed.clone() };
        std::thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let (asked, closed) = (asked.clone(), closed.clone());
                std::thread::spawn(move || {
                    answer(stream.unwrap(), connection, &asked);
                    closed.lock().unwrap().push(connection);
                });
            }
        });
        receiver
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// A place whose queue `q` is handled here, with these settings.
    fn place(&self, settings: &str) -> Place {
        let place = Place::new();
        let address = &self.address;
        place.write(
            "gristmill.yaml",
            format!(
                "queues:\n  - name: q\n    http: http://{address}/tasks?key=s3cret\n    secret: \
                 {SECRET}\n    settings: {settings}\n"
            ),
        );
        place
    }
}

fn answer(stream: TcpStream, connection: usize, asked: &Mutex<Vec<Asked>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let mut headers = BTreeMap::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).unwrap();
            let Some((name, value)) = header.trim_end().split_once(": ") else { break };
            headers.insert(name.to_lowercase(), value.to_owned());
        }
        let mut body = vec![0; headers["content-length"].parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let what = body["payload"].clone();
        let line = line.trim_end().to_owned();
        asked.lock().unwrap().push(Asked { line, headers, body, connection });
        let status = what["status"].as_u64().unwrap_or(204);
        let more = what["headers"].as_str().unwrap_or_default();
        let body = what["body"].as_str().unwrap_or_default();
        let written = match what["then"].as_str() {
            Some("hang") => {
                // Until the other side closes.
                let _ = reader.read(&mut [0]);
                return;
            }
            Some("endless") => {
                let _ = stream.write_all(b"HTTP/1.1 500 No\r\n\r\n");
                while stream.write_all(&[b'x'; 65536]).is_ok() {}
                return;
            }
            _ => {
                let length = body.len();
                stream.write_all(
                    format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{more}\r\n{body}")
                        .as_bytes(),
                )
            }
        };
        if written.is_err() || more.contains("connection: close") {
            return;
        }
    }
}

/// Brings the place up, has these tasks run, and takes it down; gives back what was said.
fn run(place: &Place, payloads: &[Value], runs: u64) -> String {
    let mut up = place.start(&["up"]);
    let mut said = Running::until(&mut up.stdout, "Stop with Ctrl-C").join("\n");
    for payload in payloads {
        place.ok(&["put", "q", &payload.to_string(), "--group", "g"]);
    }
    eventually("all have run", || {
        let stats = place.stats("q");
        let of = |name: &str| stats["counters"][name].as_u64().unwrap_or_default();
        stats["processing"] == 0 && of("done") + of("failed") + of("released") >= runs
    });
    up.signal(Signal::TERM);
    let (code, out, errors) = up.end();
    assert_eq!(code, 0, "{errors}");
    said += &out;
    said + &errors
}

fn task(place: &Place, id: u64) -> Value {
    place.json(&["show", &id.to_string()])
}

#[test]
fn the_status_of_the_answer_settles_the_task() {
    let receiver = Receiver::new();
    let place = receiver.place("{max_attempts: 1, backoff: {base: 1h, cap: 1h, jitter: false}}");
    let said = run(
        &place,
        &[
            json!({ "status": 200, "body": "{\"sent\":true}" }),
            json!({ "status": 204 }),
            json!({ "status": 500, "body": "no database\n" }),
            json!({ "status": 422, "body": "no such item" }),
            json!({ "status": 410 }),
            json!({ "status": 429, "headers": "retry-after: 7200\r\n" }),
            json!({ "status": 503 }),
            json!({ "status": 307, "headers": "location: /other\r\n" }),
        ],
        8,
    );
    assert!(!said.contains("s3cret"), "{said}");
    let stats = place.stats("q");
    assert_eq!((&stats["counters"]["done"], &stats["failed"]), (&json!(2), &json!(4)), "{stats}");
    for (id, outcome, part) in [
        (3, "error", "HTTP 500: no database"),
        (4, "fail", "HTTP 422: no such item"),
        (5, "fail", "HTTP 410"),
        (8, "error", "leads to /other, and no redirect is followed"),
    ] {
        let task = task(&place, id);
        assert_eq!(task["history"][0]["outcome"], outcome, "{task}");
        assert!(task["error"].as_str().unwrap().contains(part), "{task}");
    }
    // Micros of when it was put and of when it falls due.
    for (id, least, most) in [(6, 7_195, 7_260), (7, 3_595, 3_660)] {
        let task = task(&place, id);
        assert_eq!((&task["state"], &task["attempts"]), (&json!("pending"), &json!(0)), "{task}");
        let at = |name: &str| task[name].as_str().unwrap().parse::<gristmill::Timestamp>().unwrap();
        let waits = at("run_at").since(at("created_at")).as_secs();
        assert!((least..=most).contains(&waits), "{waits} s: {task}");
    }
    let asked = receiver.asked();
    assert_eq!(asked.len(), 8, "each once, and nothing else: {asked:?}");
    assert!(asked.iter().all(|asked| asked.line == "POST /tasks?key=s3cret HTTP/1.1"));
}

#[test]
fn the_answer_is_the_result() {
    let receiver = Receiver::new();
    let place = receiver.place("{keep_result: 1h}");
    let large = "x".repeat(100_000);
    run(
        &place,
        &[
            json!({ "status": 200, "body": "{\"sent\": 1}" }),
            json!({ "status": 200, "body": "plain" }),
            json!({ "status": 204 }),
            json!({ "status": 200, "body": large }),
        ],
        4,
    );
    let result = |id: u64| task(&place, id)["result"].clone();
    assert_eq!(result(1), json!({ "sent": 1 }));
    assert!(result(2).to_string().contains("plain"), "{}", result(2));
    assert_eq!(result(3), json!(null));
    let cut = result(4).to_string();
    assert!(cut.len() < 66_000 && cut.contains("bytes left out]"), "{}", cut.len());
}

#[test]
fn a_request_says_what_a_program_is_told() {
    let receiver = Receiver::new();
    let place = receiver.place("{}");
    run(&place, &[json!({ "body": "x" })], 1);
    let asked = receiver.asked().swap_remove(0);
    assert_eq!(asked.headers["content-type"], "application/json");
    assert_eq!(asked.headers["host"], receiver.address);
    assert!(asked.headers["webhook-id"].starts_with("task_1_"), "{asked:?}");
    assert!(asked.headers["webhook-signature"].starts_with("v1,"), "{asked:?}");
    let body = &asked.body;
    assert_eq!(
        (&body["id"], &body["queue"], &body["group"]),
        (&json!("1"), &json!("q"), &json!("g"))
    );
    assert_eq!((&body["attempt"], &body["payload"]), (&json!(1), &json!({ "body": "x" })));
}

#[test]
fn one_id_for_all_attempts_and_another_signature() {
    let receiver = Receiver::new();
    let place =
        receiver.place("{max_attempts: 2, backoff: {base: 1100ms, cap: 2s, jitter: false}}");
    run(&place, &[json!({ "status": 500 })], 1);
    let asked = receiver.asked();
    let [first, second] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(first.headers["webhook-id"], second.headers["webhook-id"]);
    assert_ne!(first.headers["webhook-timestamp"], second.headers["webhook-timestamp"]);
    assert_ne!(first.headers["webhook-signature"], second.headers["webhook-signature"]);
    assert_eq!((&first.body["attempt"], &second.body["attempt"]), (&json!(1), &json!(2)));
}

#[test]
fn connections_are_kept_and_made_again() {
    let receiver = Receiver::new();
    let place = receiver.place("{}");
    let mut payloads = vec![json!({}); 20];
    payloads.push(json!({ "headers": "connection: close\r\n" }));
    payloads.extend(vec![json!({}); 20]);
    // All at once, so that one follows the other.
    let lines: String = payloads.iter().map(|payload| format!("{payload}\n")).collect();
    place.ok(&["queue", "add", "q"]);
    place.run_with(&["put", "q", "--from", "-"], lines.as_bytes());
    run(&place, &[], 41);
    let asked = receiver.asked();
    assert_eq!(asked.len(), 41);
    assert_eq!(place.stats("q")["counters"]["done"], 41);
    let connections = asked.iter().map(|asked| asked.connection).max().unwrap() + 1;
    assert!((2..10).contains(&connections), "{connections} connections for 41 tasks");
}

#[test]
fn a_receiver_that_does_not_answer_costs_the_timeout_and_its_connection() {
    let receiver = Receiver::new();
    let place = receiver.place("{max_attempts: 1, timeout: 500ms}");
    run(&place, &[json!({ "then": "hang" }), json!({})], 2);
    assert_eq!(task(&place, 1)["history"][0]["outcome"], "timed_out");
    assert_eq!(place.stats("q")["counters"]["done"], 1);
    eventually("its connection is closed", || receiver.closed.lock().unwrap().contains(&0));
}

#[test]
fn an_answer_without_end_is_not_read_to_its_end() {
    let receiver = Receiver::new();
    let place = receiver.place("{max_attempts: 1}");
    run(&place, &[json!({ "then": "endless" })], 1);
    let error = task(&place, 1)["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("HTTP 500: xxxx") && error.len() <= 4096, "{}", error.len());
    eventually("its connection is closed", || receiver.closed.lock().unwrap().contains(&0));
}

#[test]
fn nobody_there_is_an_error_without_the_secret() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let place = Place::new();
    place.write(
        "gristmill.yaml",
        format!(
            "queues:\n  - {{name: q, http: 'http://{address}/x?s3cret', secret: {SECRET}, settings: \
             {{max_attempts: 1}}}}\n"
        ),
    );
    run(&place, &[json!(1)], 1);
    let error = task(&place, 1)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("/x?…: no connection: "), "{error}");
    let shown = place.ok(&["config", "show"]);
    assert!(shown.contains("queues.q.http") && shown.contains("(not shown)"), "{shown}");
    assert!(!shown.contains("s3cret") && !shown.contains("MfKQ"), "{shown}");
}

#[test]
fn mistakes_about_urls_are_told_with_their_place() {
    let place = Place::new();
    for (queue, part) in [
        ("{name: q, http: 'http://h/x'}", "requests are signed"),
        ("{name: q, secret: whsec_x}", "secret goes with http"),
        ("{name: q, http: 'http://h', secret: s3cret}", "begins with whsec_"),
        ("{name: q, http: 'h/x', secret: {env: NOT_THERE}}", "no variable NOT_THERE"),
        ("{name: q, http: 'ftp://h', secret: {env: USER}}", "begins with http:// or https://"),
        ("{name: q, exec: cat, http: 'http://h', secret: s}", "one handler: exec or http"),
        ("{name: q, http: 'http://h', mode: stream}", "mode goes with exec"),
    ] {
        place.write("gristmill.yaml", format!("queues:\n  - {queue}\n"));
        let answer = place.run(&["config", "check"]);
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.stderr.contains(part), "{queue}: {}", answer.stderr);
        assert!(!answer.stderr.contains("s3cret"), "{}", answer.stderr);
    }
}

/// A program in Python, and the port that it says it listens at.
struct Served {
    child: std::process::Child,
    port: u16,
    /// It says more, and would end if nobody could hear it.
    _out: BufReader<std::process::ChildStdout>,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn served(place: &Place, program: &str) -> Option<Served> {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("NOT RUN: python3 is missing");
        return None;
    }
    place.write("receiver.py", program);
    let mut child = Command::new("python3")
        .args(["-u", "receiver.py"])
        .current_dir(place.path(""))
        .env("SHOP_WEBHOOK_SECRET", SECRET)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let port = line.trim().parse().unwrap();
    Some(Served { child, port, _out: out })
}

#[test]
fn the_receiver_of_the_docs_takes_what_is_signed_and_nothing_else() {
    let place = Place::with(&[&["q"]]);
    // The second block of that language; with a port of its own.
    let program = blocks("python").swap_remove(1);
    let listens = "server.serve_forever()";
    assert!(program.contains(listens), "{program}");
    let program = program
        .replace("8080", "0")
        .replace(listens, &format!("print(server.server_port)\n{listens}"));
    let Some(receiver) = served(&place, &program) else { return };
    let url = format!("http://127.0.0.1:{}/tasks", receiver.port);
    let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    for (secret, state) in [(SECRET, "done"), (other, "failed")] {
        place.write(
            "gristmill.yaml",
            format!(
                "queues:\n  - {{name: q, http: '{url}', secret: {secret}, settings: {{max_attempts: \
                 1}}}}\n"
            ),
        );
        run(&place, &[json!({ "to": "ada" })], if state == "done" { 1 } else { 2 });
        assert_eq!(place.stats("q")["counters"][state], 1, "{state}");
    }
    assert!(task(&place, 2)["error"].as_str().unwrap().starts_with("HTTP 401"));
}

/// A receiver behind TLS with a certificate of its own.
const ENCRYPTED: &str = "
import http.server, ssl
class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers['content-length']))
        self.send_response(204)
        self.end_headers()
server = http.server.HTTPServer(('127.0.0.1', 0), Receiver)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('host.crt', 'host.key')
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port)
server.serve_forever()
";

fn openssl(place: &Place, words: &str) -> Option<PathBuf> {
    let mut command = Command::new("openssl");
    let Ok(made) = command.args(words.split(' ')).current_dir(place.path("")).output() else {
        println!("NOT RUN: openssl is missing");
        return None;
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(place.path(""))
}

#[test]
fn an_encrypted_receiver_has_to_show_who_it_is() {
    let place = Place::with(&[&["q", "max_attempts=1"]]);
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    for words in [
        &format!("req -x509 {key} -days 2 -subj /CN=ca -keyout ca.key -out ca.crt"),
        &format!("req {key} -subj /CN=host -keyout host.key -out host.csr"),
    ] {
        if openssl(&place, words).is_none() {
            return;
        }
    }
    place.write("ext", "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n");
    openssl(
        &place,
        "x509 -req -in host.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out \
         host.crt",
    );
    let Some(receiver) = served(&place, ENCRYPTED) else { return };
    place.write(
        "gristmill.yaml",
        format!(
            "queues:\n  - {{name: q, http: 'https://localhost:{}/', secret: {SECRET}, settings: \
             {{max_attempts: 1}}}}\n",
            receiver.port
        ),
    );
    for (trusts, ends) in [(false, "failed"), (true, "done")] {
        let mut command = place.command(&["up"]);
        if trusts {
            command.env("SSL_CERT_FILE", place.path("ca.crt"));
        }
        let mut up = Running::of(&mut command);
        Running::until(&mut up.stdout, "Stop with Ctrl-C");
        place.ok(&["put", "q", "1"]);
        eventually(ends, || place.stats("q")["counters"][ends] == 1);
        up.signal(Signal::TERM);
        assert_eq!(up.end().0, 0);
    }
    let error = task(&place, 1)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("no encrypted connection: "), "{error}");
}

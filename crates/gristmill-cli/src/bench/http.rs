//! The service over loopback, on SQLite: beside the library on the same store, and
//! beside a route of the same server that does nothing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gristmill::{Mill, TaskType};
use gristmill_server::{Options, Port, Server};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::load::{BenchError, Grain, drain};
use super::sqlite::{BATCH, Round};
use super::{Measured, Plan, Rounds, Row, rate};

/// Connections that put at the same time.
const CALLERS: usize = 64;
/// Tasks of one claim and one settlement.
const CLAIMED: usize = 100;

/// A service over a store.
struct Site {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

impl Site {
    async fn over(mill: &Mill) -> Result<Self, BenchError> {
        let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let port = Port::take(any).await.map_err(|e| BenchError::Caller(e.to_string()))?;
        let address = port.address();
        let (stop, stops) = oneshot::channel();
        let server = Server::new(port, mill, Options::default());
        let running = tokio::spawn(server.run(async move {
            let _ = stops.await;
        }));
        Ok(Site { address, stop, running })
    }

    async fn end(self) {
        drop(self.stop);
        let _ = self.running.await;
    }
}

/// A connection that is used again and again.
struct Connection(BufReader<TcpStream>);

impl Connection {
    async fn to(site: &Site) -> Result<Self, BenchError> {
        let stream = TcpStream::connect(site.address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection(BufReader::new(stream)))
    }

    /// Sends a request and reads its answer, which must be a success.
    async fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> Result<Vec<u8>, BenchError> {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.0.get_mut().write_all(&request).await?;
        let head = head(&mut self.0).await?;
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        let length = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        let mut answer = vec![0; length];
        self.0.read_exact(&mut answer).await?;
        Ok(answer)
    }
}

/// Reads the head of an answer, which must be a success.
async fn head(stream: &mut (impl AsyncBufReadExt + Unpin)) -> Result<String, BenchError> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await? == 0 {
            return Err(BenchError::Caller("the connection was closed".to_owned()));
        }
    }
    if !head.starts_with("HTTP/1.1 2") {
        let first = head.lines().next().unwrap_or_default();
        return Err(BenchError::Caller(format!("the service answered {first}")));
    }
    Ok(head.to_ascii_lowercase())
}

/// A task as it is sent.
fn line(number: usize) -> Result<String, BenchError> {
    let grain = Grain::new(number);
    let wrong = |e: serde_json::Error| BenchError::Caller(e.to_string());
    let payload = serde_json::to_string(&grain).map_err(wrong)?;
    Ok(match grain.key() {
        Some(key) => format!("{{\"payload\":{payload},\"key\":\"{key}\"}}"),
        None => format!("{{\"payload\":{payload}}}"),
    })
}

/// All of it.
pub(super) async fn rows(folder: &Path, plan: Plan) -> Result<Measured, BenchError> {
    let rows = vec![
        puts(folder, plan).await?,
        bulk(folder, plan).await?,
        claim_settle(folder, plan).await?,
    ];
    Ok(Measured { rows, costs: Vec::new() })
}

/// So many requests over so many connections. Returns how long they took.
async fn asked(site: &Site, requests: usize, puts: bool) -> Result<Duration, BenchError> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut connections = Vec::new();
    for _ in 0..CALLERS {
        connections.push(Connection::to(site).await?);
    }
    let start = Instant::now();
    let running: Vec<_> = connections
        .into_iter()
        .map(|mut connection| {
            let next = next.clone();
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= requests {
                        return Ok::<(), BenchError>(());
                    }
                    if puts {
                        let path = "/v1/queues/bench/tasks";
                        connection.ask("POST", path, line(number)?.as_bytes()).await?;
                    } else {
                        connection.ask("GET", "/livez", b"").await?;
                    }
                }
            })
        })
        .collect();
    for caller in running {
        caller.await.map_err(|e| BenchError::Caller(e.to_string()))??;
    }
    Ok(start.elapsed())
}

async fn puts(folder: &Path, plan: Plan) -> Result<Row, BenchError> {
    let tasks = plan.tasks / 5;
    let mut rounds = Rounds::default();
    for number in 0..plan.rounds {
        let file = Round::new(folder, "http", number);
        let mill = file.mill().await?;
        let site = Site::over(&mill).await?;
        let ours = rate(tasks, asked(&site, tasks, true).await?);
        let empty = rate(tasks, asked(&site, tasks, false).await?);
        rounds.pairs.push((ours, empty));
        site.end().await;
        mill.close().await?;
    }
    let what = "64 connections put a task each over HTTP / an empty route of the same server";
    Ok(Row::against("http_put_64", what, rounds))
}

/// Streams so many tasks over one connection. Returns how long they took.
async fn streamed(site: &Site, tasks: usize) -> Result<Duration, BenchError> {
    let Connection(stream) = Connection::to(site).await?;
    let lines: Vec<String> = (0..tasks).map(line).collect::<Result<_, _>>()?;
    let start = Instant::now();
    let (mut read, mut write) = tokio::io::split(stream);
    let sending = tokio::spawn(async move {
        let head = "POST /v1/queues/bench/tasks HTTP/1.1\r\nhost: localhost\r\n\
                    content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n";
        write.write_all(head.as_bytes()).await?;
        for some in lines.chunks(BATCH) {
            let text = some.join("\n") + "\n";
            write.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await?;
        }
        write.write_all(b"0\r\n\r\n").await
    });
    let mut answers = BufReader::new(&mut read);
    head(&mut answers).await?;
    let (mut answered, mut size) = (0, String::new());
    loop {
        size.clear();
        answers.read_line(&mut size).await?;
        let length = usize::from_str_radix(size.trim(), 16)
            .map_err(|_| BenchError::Caller("the stream was cut".to_owned()))?;
        let mut chunk = vec![0; length + 2];
        answers.read_exact(&mut chunk).await?;
        answered += chunk.windows(11).filter(|text| *text == b"\"enqueued\",").count();
        if length == 0 {
            break;
        }
    }
    sending.await.map_err(|e| BenchError::Caller(e.to_string()))??;
    if answered != tasks {
        return Err(BenchError::Caller(format!("{answered} of {tasks} tasks were taken")));
    }
    Ok(start.elapsed())
}

async fn bulk(folder: &Path, plan: Plan) -> Result<Row, BenchError> {
    let mut rounds = Rounds::default();
    for number in 0..plan.rounds {
        let file = Round::new(folder, "http", number);
        let mill = file.mill().await?;
        let site = Site::over(&mill).await?;
        let ours = rate(plan.tasks, streamed(&site, plan.tasks).await?);
        site.end().await;
        mill.close().await?;

        let file = Round::new(folder, "library", number);
        let mill = file.mill().await?;
        let start = Instant::now();
        mill.put_all((0..plan.tasks).map(Grain::new)).flush(BATCH).run().await?;
        rounds.pairs.push((ours, rate(plan.tasks, start.elapsed())));
        mill.close().await?;
    }
    let what = "NDJSON over one connection / the library's bulk put, flushes of 1,000";
    Ok(Row::against("http_bulk", what, rounds))
}

/// What is needed of a claim to settle it.
#[derive(Deserialize)]
struct Claimed {
    token: String,
    tasks: Vec<One>,
}

#[derive(Deserialize)]
struct One {
    id: String,
}

/// Claims and settles until nothing is due. Returns how many tasks.
async fn drained(site: &Site) -> Result<usize, BenchError> {
    let wrong = |e: serde_json::Error| BenchError::Caller(e.to_string());
    let mut connection = Connection::to(site).await?;
    let ask = json!({ "queues": ["bench"], "max": CLAIMED, "worker": "bench" }).to_string();
    let mut all = 0;
    loop {
        let answer = connection.ask("POST", "/v1/claims", ask.as_bytes()).await?;
        let Claimed { token, tasks } = serde_json::from_slice(&answer).map_err(wrong)?;
        if tasks.is_empty() {
            return Ok(all);
        }
        all += tasks.len();
        let said: Vec<_> = tasks
            .iter()
            .map(|One { id }| json!({ "id": id, "token": token, "outcome": "done" }))
            .collect();
        let said = serde_json::to_vec(&said).map_err(wrong)?;
        connection.ask("POST", "/v1/settlements", &said).await?;
    }
}

async fn claim_settle(folder: &Path, plan: Plan) -> Result<Row, BenchError> {
    let tasks = plan.tasks / 4;
    let mut rounds = Rounds::default();
    for number in 0..plan.rounds {
        let file = Round::new(folder, "http", number);
        let mill = file.full(tasks).await?;
        let site = Site::over(&mill).await?;
        let start = Instant::now();
        let ours = rate(drained(&site).await?, start.elapsed());
        site.end().await;
        mill.close().await?;

        let file = Round::new(folder, "library", number);
        let mill = file.full(tasks).await?;
        let start = Instant::now();
        let library = rate(drain(&mill, CLAIMED).await?, start.elapsed());
        rounds.pairs.push((ours, library));
        mill.close().await?;
    }
    let what = "claim and settle in 100s over HTTP / the library's, in 100s";
    Ok(Row::against("http_claim_settle", what, rounds))
}

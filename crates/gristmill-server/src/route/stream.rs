//! A stream of NDJSON: a task a line in, an answer a line out, in constant memory.
//!
//! ```text
//!   body ──► lines ──► flush ──► store ──► answers ──► client
//!            read and parsed    put, a flush at a time
//! ```
//!
//! A flush goes out when it is large enough or when the sender pauses, so that who
//! sends a line and waits for its answer gets it. A response that breaks off means
//! *unknown* for every line that was not answered.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use gristmill::QueueName;
use gristmill::port::NewTask;
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::put::{fitted, flush, refused};
use crate::access::Caller;
use crate::body;
use crate::known::Queues;
use crate::limits::{self, BODY, STREAM_BYTES, STREAM_IDLE, STREAM_TASKS};
use crate::message::answer::PutOut;
use crate::problem::{Answer, BAD_REQUEST, Problem, STOPPING, TOO_LARGE, TOO_SLOW, UNKNOWN};
use crate::service::Service;
use crate::trace::Trace;

/// Tasks and bytes after which a flush goes out.
const FLUSH_TASKS: usize = 1_000;
const FLUSH_BYTES: usize = 1 << 20;
/// A sender that pauses for this long waits for answers.
const PAUSE: Duration = Duration::from_millis(2);

/// One line, read: a task, or why it is none.
type Line = Result<NewTask, PutOut>;

/// Lines that are answered together.
#[derive(Default)]
struct Batch {
    lines: Vec<Line>,
    bytes: usize,
    /// Why nothing comes after it.
    end: Option<Box<Problem>>,
}

pub(crate) async fn put(
    service: Arc<Service>,
    caller: Caller,
    queue: QueueName,
    trace: Trace,
    body: Body,
) -> Answer {
    let queues = service.known.expect(&service, &queue).await?;
    let (send, batches) = mpsc::channel(1);
    let (answer, answers) = mpsc::channel(4);
    let reader = Reader {
        line: limits::line_bytes(service.store.limits()),
        service: service.clone(),
        queue: queue.clone(),
        queues,
        body,
        rest: BytesMut::new(),
        tasks: 0,
        bytes: 0,
    };
    tokio::spawn(reader.run(send));
    tokio::spawn(answer_all(service, (caller, trace), queue, batches, answer));
    let stream = futures_util::stream::unfold(answers, |mut answers| async move {
        let next: Option<Result<Bytes, std::io::Error>> = answers.recv().await;
        next.map(|bytes| (bytes, answers))
    });
    let mut response = Response::new(Body::from_stream(stream));
    let ndjson = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(header::CONTENT_TYPE, ndjson);
    Ok(response)
}

/// Puts batch after batch, and answers. Ends when the client is gone, at the first
/// flush that the store does not answer for, or at the end.
async fn answer_all(
    service: Arc<Service>,
    (caller, trace): (Caller, Trace),
    queue: QueueName,
    mut batches: mpsc::Receiver<Batch>,
    answers: mpsc::Sender<Result<Bytes, std::io::Error>>,
) {
    while let Some(batch) = batches.recv().await {
        let mut tasks = Vec::with_capacity(batch.lines.len());
        let mut lines: Vec<Option<PutOut>> = Vec::with_capacity(batch.lines.len());
        for line in batch.lines {
            match line {
                Ok(mut task) => {
                    trace.give(&mut task, service.store.limits().headers_bytes);
                    tasks.push(task);
                    lines.push(None);
                }
                Err(refused) => lines.push(Some(refused)),
            }
        }
        let mut end = batch.end;
        let answer = |lines: Vec<Option<PutOut>>, mut next: Box<dyn FnMut() -> PutOut + Send>| {
            let mut text = Vec::with_capacity(lines.len() * 40);
            for line in lines {
                let line = line.unwrap_or_else(&mut next);
                // A mirror of plain texts has a form.
                let _ = serde_json::to_writer(&mut text, &line);
                text.push(b'\n');
            }
            text
        };
        // A stream may last for hours, and its token may be revoked meanwhile.
        let put = match service.door.still_takes(&caller).await {
            Ok(()) => flush(&service, queue.clone(), tasks, false).await,
            Err(problem) => Err(problem),
        };
        let mut text = match put {
            Ok(report) => {
                let mut put = report.answers.into_iter();
                let none = || PutOut::failed("unknown", UNKNOWN.code, "no answer came");
                answer(lines, Box::new(move || put.next().map_or_else(none, PutOut::from)))
            }
            Err(problem) => {
                // Either nothing of this flush was written, or nobody knows.
                let outcome = if problem.code() == UNKNOWN.code { "unknown" } else { "not_put" };
                let (code, detail) = (problem.code(), problem.detail().to_owned());
                end = Some(problem);
                answer(lines, Box::new(move || PutOut::failed(outcome, code, &detail)))
            }
        };
        if let Some(problem) = &end {
            text.extend_from_slice(problem.json().to_string().as_bytes());
            text.push(b'\n');
        }
        if !text.is_empty() && answers.send(Ok(text.into())).await.is_err() {
            return;
        }
        if end.is_some() {
            return;
        }
    }
}

/// Cuts a body into lines, and lines into tasks.
struct Reader {
    service: Arc<Service>,
    queue: QueueName,
    queues: Arc<Queues>,
    body: Body,
    /// Of a line whose end did not come yet.
    rest: BytesMut,
    /// Longest line.
    line: usize,
    tasks: u64,
    bytes: u64,
}

/// What came next.
enum Came {
    Bytes(Bytes),
    End,
    Pause,
    Stop(Box<Problem>),
}

impl Reader {
    async fn run(mut self, send: mpsc::Sender<Batch>) {
        let mut batch = Batch::default();
        let mut began = Instant::now();
        loop {
            let came = tokio::select! {
                biased;
                () = send.closed() => return,
                came = self.next(batch.lines.is_empty(), began) => came,
            };
            let pauses = matches!(came, Came::Pause);
            match came {
                Came::Bytes(bytes) => {
                    if self.rest.is_empty() {
                        began = Instant::now();
                    }
                    self.take(&bytes, &mut batch);
                    if bytes.contains(&b'\n') {
                        began = Instant::now();
                    }
                }
                Came::End => {
                    let last = self.rest.split().freeze();
                    self.line(&last, &mut batch);
                    let _ = send.send(batch).await;
                    return;
                }
                Came::Pause => {}
                Came::Stop(problem) => batch.end = Some(problem),
            }
            let ended = batch.end.is_some();
            let full = batch.lines.len() >= FLUSH_TASKS || batch.bytes >= FLUSH_BYTES;
            let paused = pauses && !batch.lines.is_empty();
            if (ended || full || paused) && send.send(std::mem::take(&mut batch)).await.is_err() {
                return;
            }
            if ended {
                return;
            }
        }
    }

    /// The next bytes. A sender that has something to be answered for is waited for
    /// only a moment; one that began a line, for as long as a line may take.
    async fn next(&mut self, empty: bool, began: Instant) -> Came {
        if self.service.is_stopping() {
            return Came::Stop(Problem::new(&STOPPING, "the service stops; send the rest again"));
        }
        let inside = !self.rest.is_empty();
        let line_until = began + BODY;
        let until = match (empty, inside) {
            (false, _) => Instant::now() + PAUSE,
            (true, true) => line_until,
            (true, false) => Instant::now() + STREAM_IDLE,
        };
        if inside && Instant::now() >= line_until {
            return Came::Stop(Problem::new(&TOO_SLOW, format!("a line took over {BODY:?}")));
        }
        let service = self.service.clone();
        let frame = tokio::select! {
            frame = tokio::time::timeout_at(until, self.body.frame()) => frame,
            () = service.stops() => return Came::Pause,
        };
        match frame {
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(bytes) => Came::Bytes(bytes),
                Err(_) => Came::Bytes(Bytes::new()),
            },
            Ok(None) => Came::End,
            Ok(Some(Err(error))) => {
                Came::Stop(Problem::new(&BAD_REQUEST, format!("the stream broke off: {error}")))
            }
            Err(_) if !empty => Came::Pause,
            Err(_) if inside => Came::Pause,
            Err(_) => {
                let why = format!("no line came for {STREAM_IDLE:?}");
                Came::Stop(Problem::new(&TOO_SLOW, why))
            }
        }
    }

    /// Takes bytes, and what lines they complete.
    fn take(&mut self, bytes: &[u8], batch: &mut Batch) {
        self.bytes += bytes.len() as u64;
        let mut left = bytes;
        while let Some(at) = left.iter().position(|byte| *byte == b'\n') {
            let (head, tail) = left.split_at(at);
            left = tail.get(1..).unwrap_or_default();
            if self.rest.is_empty() {
                self.line(head, batch);
            } else {
                self.rest.extend_from_slice(head);
                let whole = self.rest.split().freeze();
                self.line(&whole, batch);
            }
            if batch.end.is_some() {
                return;
            }
        }
        self.rest.extend_from_slice(left);
        if self.rest.len() > self.line {
            let why = format!("a line has at most {} bytes here", self.line);
            batch.end = Some(Problem::new(&TOO_LARGE, why));
        } else if self.bytes > STREAM_BYTES {
            let why = format!("a stream has at most {STREAM_BYTES} bytes here: begin another");
            batch.end = Some(Problem::new(&TOO_LARGE, why));
        }
    }

    fn line(&mut self, line: &[u8], batch: &mut Batch) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        self.tasks += 1;
        if self.tasks > STREAM_TASKS {
            let why = format!("a stream has at most {STREAM_TASKS} tasks here: begin another");
            batch.end = Some(Problem::new(&TOO_LARGE, why));
            return;
        }
        batch.bytes += line.len();
        let task = body::parse(line).and_then(|task| fitted(task, &self.queue, &self.queues));
        batch.lines.push(task.map_err(|problem| refused(&problem)));
    }
}

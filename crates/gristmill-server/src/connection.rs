//! One connection: timed while it should speak, counted, and closed when it does
//! not or when others need its place.
//!
//! hyper's own timer for heads starts at their first byte: a connection that says
//! nothing at all would stay for ever. So the time is kept where bytes come in.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};

use crate::limits::{CONNECTIONS, HEAD, IDLE, UNREAD};

/// The connections that are open.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    next: u64,
    all: BTreeMap<u64, Arc<Connection>>,
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, Open> {
        // A list is valid whatever a panicking holder did.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more. When all are taken, the connection that has waited for
    /// a request longest is closed; nothing when every one is being served.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Place> {
        let mut open = self.lock();
        if open.all.len() >= CONNECTIONS {
            let waiting = open.all.iter().filter_map(|(id, known)| Some((known.waits()?, *id)));
            let (_, id) = waiting.min()?;
            let closed = open.all.remove(&id)?;
            closed.close.notify_one();
        }
        open.next += 1;
        let id = open.next;
        let connection = Arc::new(Connection::new());
        open.all.insert(id, connection.clone());
        Some(Place { connections: self.clone(), id, connection })
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().all.len()
    }
}

/// A connection's place among the others, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    connections: Arc<Connections>,
    id: u64,
    pub(crate) connection: Arc<Connection>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.lock().all.remove(&self.id);
    }
}

/// What is known of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Told to close, for the sake of others.
    pub(crate) close: Notify,
    /// A request is being served.
    busy: AtomicBool,
    waiting: Mutex<Waiting>,
}

/// The wait for a request.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    since: Instant,
    until: Instant,
    /// Its first byte came.
    begun: bool,
}

impl Connection {
    fn new() -> Self {
        let now = Instant::now();
        let waiting = Waiting { since: now, until: now + HEAD, begun: false };
        Connection {
            close: Notify::new(),
            busy: AtomicBool::new(false),
            waiting: Mutex::new(waiting),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since when it waits for a request, if it does.
    fn waits(&self) -> Option<Instant> {
        (!self.busy.load(Ordering::Relaxed)).then(|| self.lock().since)
    }

    /// Until when bytes must come; without end while a request is served.
    fn deadline(&self) -> Option<Instant> {
        (!self.busy.load(Ordering::Relaxed)).then(|| self.lock().until)
    }

    /// Its first request is waited for from now on.
    fn greeted(&self) {
        let mut waiting = self.lock();
        waiting.until = Instant::now() + HEAD;
    }

    /// Bytes came.
    fn heard(&self) {
        let mut waiting = self.lock();
        if !waiting.begun {
            waiting.begun = true;
            waiting.until = Instant::now() + HEAD;
        }
    }

    /// A request's head is read. It is served until its answer is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Serving {
        self.busy.store(true, Ordering::Relaxed);
        Serving(self.clone())
    }
}

/// A request that is being served.
#[derive(Debug)]
pub(crate) struct Serving(Arc<Connection>);

impl Drop for Serving {
    fn drop(&mut self) {
        let now = Instant::now();
        *self.0.lock() = Waiting { since: now, until: now + IDLE, begun: false };
        self.0.busy.store(false, Ordering::Relaxed);
    }
}

/// An answer's body, which keeps its connection busy until it is sent or dropped.
#[derive(Debug)]
pub(crate) struct Served {
    body: Body,
    _serving: Serving,
}

impl Served {
    pub(crate) const fn new(body: Body, serving: Serving) -> Self {
        Served { body, _serving: serving }
    }
}

impl HttpBody for Served {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The bytes of a connection, in time or not at all.
#[derive(Debug)]
pub(crate) struct Timed<S> {
    stream: S,
    connection: Arc<Connection>,
    reading: Pin<Box<Sleep>>,
    writing: Option<Pin<Box<Sleep>>>,
}

impl<S> Timed<S> {
    pub(crate) fn new(stream: S, connection: Arc<Connection>) -> Self {
        // Agreeing on encryption had a time of its own.
        connection.greeted();
        let reading = Box::pin(tokio::time::sleep(HEAD));
        Timed { stream, connection, reading, writing: None }
    }

    /// What a write came to; one that nobody takes ends the connection.
    fn written<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.writing = None;
            return written;
        }
        let sleep = self.writing.get_or_insert_with(|| Box::pin(tokio::time::sleep(UNREAD)));
        ready!(sleep.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Timed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(context, buffer) {
            if buffer.filled().len() > before {
                self.connection.heard();
            }
            return Poll::Ready(read);
        }
        let Some(deadline) = self.connection.deadline() else { return Poll::Pending };
        if self.reading.deadline() != deadline {
            self.reading.as_mut().reset(deadline);
        }
        ready!(self.reading.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.written(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

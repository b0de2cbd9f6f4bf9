//! What is too much: every body, batch, list, wait and connection has a limit.

use std::time::Duration;

use gristmill::port::Limits;

/// Most connections at once. Of more, one that waits for a request is closed.
pub(crate) const CONNECTIONS: usize = 1_024;
/// How long a new connection may say nothing, and how long the head of a request
/// may take from its first byte.
pub(crate) const HEAD: Duration = Duration::from_secs(10);
/// How long agreeing on encryption may take.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a connection may wait for its next request.
pub(crate) const IDLE: Duration = Duration::from_secs(60);
/// How long a client may not take what was written for it.
pub(crate) const UNREAD: Duration = Duration::from_secs(30);
/// How long a whole body may take, and one line of a stream.
pub(crate) const BODY: Duration = Duration::from_secs(30);
/// How long a stream may be silent between two lines.
pub(crate) const STREAM_IDLE: Duration = Duration::from_secs(60);
/// Most bytes in the head of a request.
pub(crate) const HEAD_BYTES: usize = 16 << 10;
/// Most bytes of a body, unless one payload may be larger.
const BODY_BYTES: usize = 8 << 20;
/// Most bytes of bodies in memory at once, over all connections.
pub(crate) const BODIES_BYTES: usize = 32 << 20;
/// Most tasks and bytes in one stream.
pub(crate) const STREAM_TASKS: u64 = 10_000_000;
/// See [`STREAM_TASKS`].
pub(crate) const STREAM_BYTES: u64 = 4 << 30;
/// Most queues that one claim may name.
pub(crate) const CLAIM_QUEUES: usize = 100;
/// Most keys in one find.
pub(crate) const FIND_KEYS: usize = 1_000;
/// Most extensions in one call.
pub(crate) const EXTENSIONS: usize = 1_000;
/// Most tasks of which one extension says how far they are.
pub(crate) const PROGRESS: usize = 1_000;
/// Tasks on a page unless said.
pub(crate) const PAGE: usize = 100;
/// Most bytes of payloads on a page: it ends early rather than grow.
pub(crate) const PAGE_BYTES: usize = 8 << 20;
/// Most claims whose queue is remembered.
pub(crate) const LEASED: usize = 10_000;
/// Most listeners to events at once.
pub(crate) const LISTENERS: usize = 64;
/// Most requests that wait for work or for a task's end at once.
pub(crate) const WAITERS: usize = 512;
/// How long what is under way may take when the service stops.
pub(crate) const STOP: Duration = Duration::from_secs(5);

/// Most bytes of a body, where the store takes payloads of this size.
pub(crate) fn body_bytes(limits: &Limits) -> usize {
    BODY_BYTES.max(line_bytes(limits))
}

/// Most bytes of one task: its payload in base64, or in JSON with some escapes, and
/// what is said about it.
pub(crate) fn line_bytes(limits: &Limits) -> usize {
    limits.payload_bytes.saturating_mul(2).saturating_add(64 << 10)
}

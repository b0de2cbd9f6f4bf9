//! Standard error, which nobody waits for while it is not read.
//!
//! A command that asks and ends writes to it as any program does. One that stays
//! must not: a log that is not read (a stuck pipe to a logging service) fills up,
//! and whoever writes to it then sleeps for ever, with the runtime's thread, its
//! tasks, and the listening for signals. So a thread of its own writes. What it
//! cannot take is not shown, and how much that was is said when it can again.

use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use gristmill::port::{Clock, SystemClock};
use serde_json::json;

use crate::args::LogFormat;

/// Pieces that wait for the writer; one has up to 4 KiB of a program's output.
const WAITING: usize = 256;
/// How long the end of the process waits for the last words, while they move on,
/// and once they do not.
const LAST_WORDS: Duration = Duration::from_millis(1_000);
const STUCK: Duration = Duration::from_millis(200);

/// Lines are JSON objects.
static JSON: AtomicBool = AtomicBool::new(false);
static WRITER: OnceLock<Option<Writer>> = OnceLock::new();
/// Lines that were not shown and not yet told of.
static NOT_SHOWN: AtomicU64 = AtomicU64::new(0);
/// Pieces that were written or given up.
static WRITTEN: AtomicU64 = AtomicU64::new(0);
/// Pieces that the writer was given.
static GIVEN: AtomicU64 = AtomicU64::new(0);

struct Writer(SyncSender<Vec<u8>>);

/// From now on nobody waits for standard error.
pub(crate) fn stay() {
    WRITER.get_or_init(|| {
        // A copy of our own: whoever else writes holds the lock of the first.
        let file = File::from(std::io::stderr().as_fd().try_clone_to_owned().ok()?);
        let (pieces, received) = sync_channel(WAITING);
        let name = "gristmill-stderr".to_owned();
        let started = std::thread::Builder::new().name(name).spawn(move || write(file, &received));
        started.ok().map(|_| Writer(pieces))
    });
}

fn write(mut file: File, pieces: &Receiver<Vec<u8>>) {
    for piece in pieces {
        // A closed one must not end a worker.
        let _ = file.write_all(&piece);
        let lines = NOT_SHOWN.swap(0, Ordering::AcqRel);
        if lines > 0 {
            let note = format!(
                "gristmill: {} not shown: standard error was not read\n",
                crate::output::count(lines, "line")
            );
            let _ = file.write_all(note.as_bytes());
        }
        WRITTEN.fetch_add(1, Ordering::Release);
    }
}

/// Shows these bytes, or counts their lines if they cannot be shown now.
pub(crate) fn show(bytes: Vec<u8>) {
    let Some(Writer(pieces)) = WRITER.get().and_then(Option::as_ref) else {
        let _ = std::io::stderr().write_all(&bytes);
        return;
    };
    match pieces.try_send(bytes) {
        Ok(()) => {
            GIVEN.fetch_add(1, Ordering::Release);
        }
        Err(refused) => {
            let (std::sync::mpsc::TrySendError::Full(bytes)
            | std::sync::mpsc::TrySendError::Disconnected(bytes)) = refused;
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count().max(1);
            NOT_SHOWN.fetch_add(lines as u64, Ordering::AcqRel);
        }
    }
}

/// Lines are JSON objects from now on, or for people.
pub(crate) fn speak(format: LogFormat) {
    JSON.store(format == LogFormat::Json, Ordering::Relaxed);
}

/// Whether lines are JSON objects.
pub(crate) fn speaks_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// Shows one line.
pub(crate) fn say(line: impl Display) {
    if speaks_json() {
        let at = SystemClock::default().now().to_string();
        let line = line.to_string();
        return plain(json!({ "at": at, "level": "info", "message": line.trim_end() }));
    }
    plain(line);
}

/// Shows one line that is written as it should be.
pub(crate) fn plain(line: impl Display) {
    show(format!("{line}\n").into_bytes());
}

/// Waits for the last words, but not for a reader that does not read.
pub(crate) fn finish() {
    if WRITER.get().is_none() {
        return;
    }
    let start = Instant::now();
    let (mut written, mut moved) = (0, start);
    while written < GIVEN.load(Ordering::Acquire) {
        let now = WRITTEN.load(Ordering::Acquire);
        if now != written {
            (written, moved) = (now, Instant::now());
        }
        if moved.elapsed() > STUCK || start.elapsed() > LAST_WORDS {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

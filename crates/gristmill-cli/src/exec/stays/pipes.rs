//! What a program that stays says: lines on its standard output, words on its standard
//! error, and its end. All of it is read as it comes, so that a program that talks never
//! waits for us.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use bytes::Bytes;
use rustix::io::Errno;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::time::Instant;

use super::super::LAST_WORDS;
use super::super::group::Group;
use super::super::tail::Tail;
use super::line::Lines;
use crate::stderr;

/// Most that is read of standard error at once, so that one that never stops talking
/// does not hold up its own answers.
const AT_ONCE: usize = 64 << 10;

/// What was heard of a program.
#[derive(Debug)]
pub(super) enum Heard {
    /// A line.
    Line(Bytes),
    /// It broke the rules of lines.
    Broke(String),
    /// It ended, or closed its standard output: no line will follow.
    Ended,
}

/// A program and what it says.
#[derive(Debug)]
pub(super) struct Pipes {
    group: Group,
    out: Option<ChildStdout>,
    err: Option<ChildStderr>,
    lines: Lines,
    tail: Tail,
    ended: Option<io::Result<ExitStatus>>,
    /// Nothing is waited for any more after this.
    over: Option<Instant>,
    /// Bytes on standard output, ever.
    said: u64,
}

impl Pipes {
    pub(super) fn new(group: Group, out: Option<ChildStdout>, err: Option<ChildStderr>) -> Self {
        Pipes {
            group,
            out,
            err,
            lines: Lines::default(),
            tail: Tail::default(),
            ended: None,
            over: None,
            said: 0,
        }
    }

    /// What comes next. May be dropped while it waits without losing anything.
    pub(super) async fn next(&mut self) -> Heard {
        let (mut out_bytes, mut err_bytes) = ([0u8; 8192], [0u8; 4096]);
        loop {
            match self.lines.next() {
                Ok(Some(line)) => return Heard::Line(line),
                Ok(None) => {}
                Err(why) => return Heard::Broke(why),
            }
            if self.out.is_none() && self.err.is_none() && self.ended.is_some() {
                return Heard::Ended;
            }
            let over = self.over;
            tokio::select! {
                biased;
                read = read(&mut self.out, &mut out_bytes), if self.out.is_some() => {
                    let read = out_bytes.get(..read).unwrap_or_default();
                    self.said += read.len() as u64;
                    self.lines.push(read);
                    if read.is_empty() {
                        self.out = None;
                        self.ends();
                    }
                }
                read = read(&mut self.err, &mut err_bytes), if self.err.is_some() => {
                    let read = err_bytes.get(..read).unwrap_or_default();
                    if read.is_empty() {
                        self.err = None;
                    }
                    heard(&mut self.tail, read);
                }
                status = self.group.wait(), if self.ended.is_none() => {
                    self.ended = Some(status);
                    self.ends();
                }
                () = sleep_until(over), if over.is_some() => return Heard::Ended,
            }
        }
    }

    /// Bytes on standard output, ever.
    pub(super) fn said(&self) -> u64 {
        self.said
    }

    /// From now on what it says to standard error is about something new.
    pub(super) fn turn_page(&mut self) {
        self.catch_up();
        self.tail = Tail::default();
    }

    /// What it said to standard error since then.
    pub(super) fn words(&mut self) -> String {
        self.catch_up();
        self.tail.text()
    }

    /// How it ended, in words, once it has.
    pub(super) fn end(&self) -> String {
        use std::os::unix::process::ExitStatusExt;
        match &self.ended {
            Some(Err(error)) => format!("its end is unknown: {error}"),
            Some(Ok(status)) => match (status.code(), status.signal()) {
                (_, Some(signal)) => format!("killed by signal {signal}"),
                (Some(code), None) => format!("exit status {code}"),
                (None, None) => "its end is unknown".to_owned(),
            },
            None => "it closed its standard output".to_owned(),
        }
    }

    /// The code it ended with.
    pub(super) fn code(&self) -> Option<i32> {
        self.ended.as_ref()?.as_ref().ok()?.code()
    }

    /// Whether it ended by itself as one that has nothing left to do.
    pub(super) fn is_ended_well(&self) -> bool {
        self.code() == Some(0)
    }

    /// Waits for an end that was asked for; what it says until then is shown.
    pub(super) async fn ends_within(&mut self, grace: Duration) {
        let ended = async { while !matches!(self.next().await, Heard::Ended) {} };
        let _ = tokio::time::timeout(grace, ended).await;
    }

    /// Ends it and all it started, if it has not ended.
    pub(super) async fn stop(mut self) {
        if self.ended.is_none() {
            self.group.stop().await;
        }
    }

    /// Reads what stands in standard error now. It was written before the line that was
    /// read last, but the runtime may not have been told of it yet.
    fn catch_up(&mut self) {
        let mut bytes = [0u8; 4096];
        let mut all = 0;
        while let Some(err) = &self.err
            && all < AT_ONCE
        {
            match rustix::io::read(err, &mut bytes) {
                Ok(0) => self.err = None,
                Ok(read) => {
                    all += read;
                    heard(&mut self.tail, bytes.get(..read).unwrap_or_default());
                }
                Err(Errno::INTR) => {}
                // Nothing is there now; whatever else it is, the runtime hears of it.
                Err(_) => return,
            }
        }
    }

    fn ends(&mut self) {
        self.over.get_or_insert(Instant::now() + LAST_WORDS);
    }
}

fn heard(tail: &mut Tail, words: &[u8]) {
    if !words.is_empty() {
        tail.push(words);
        stderr::show(words.to_vec());
    }
}

/// How many bytes came; none when nothing will.
async fn read(from: &mut Option<impl AsyncReadExt + Unpin>, bytes: &mut [u8]) -> usize {
    match from {
        Some(from) => from.read(bytes).await.unwrap_or(0),
        None => 0,
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

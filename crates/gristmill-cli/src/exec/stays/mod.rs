//! Programs that stay: started once, given one task after the other as a line of JSON.
//!
//! As many as handle tasks side by side are kept, and the one that was used last is
//! used first. One that dies costs the task it had, and is started again, later each
//! time; one that is never ready ends the work on its queue.

mod child;
mod line;
mod pipes;
mod starts;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gristmill::port::{ClaimedTask, Outcome, When};
use gristmill::worker::Context;
use gristmill::{Encoding, Payload};
use tokio::sync::{mpsc, watch};

use super::{How, starter};
use child::{Child, HINT, Patience, READY, Reply};
use line::Said;
use starts::Starts;

/// One that was not used for so long is let go, unless it is the last.
const UNUSED: Duration = Duration::from_secs(300);

/// Programs that may end before they see a task, until that is the task's error.
const NOT_SHOWN_MOST: u32 = 3;

/// Ends all programs that stay when it is time.
#[derive(Debug, Clone)]
pub(crate) struct Closing(watch::Sender<bool>);

impl Default for Closing {
    fn default() -> Self {
        Closing(watch::Sender::new(false))
    }
}

impl Closing {
    /// Those that have nothing to do end now, the others after their task.
    pub(crate) fn close(&self) {
        self.0.send_replace(true);
    }
}

/// The programs of one handler.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stays(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// Which command they run.
    what: Option<What>,
    idle: Vec<(Child, Instant)>,
    starts: Starts,
    /// It is tried no more, and why.
    given_up: Option<String>,
    hinted: bool,
}

/// What makes two programs the same.
#[derive(Debug, Clone, PartialEq, Eq)]
struct What {
    command: String,
    store: Option<gristmill::StoreUrl>,
}

/// What a program needs to be got.
enum Got {
    /// This one is free.
    Idle(Child),
    /// One is to be started, after this time.
    After(Duration),
    /// None will be.
    GivenUp(String),
}

/// Why there is no program for a task.
enum Without {
    Stopped,
    CannotRun(String),
    Error(String),
}

impl Stays {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, what: &What) -> Got {
        let mut kept = self.kept();
        if kept.what.as_ref() != Some(what) {
            // A reload wants another command: those of the old one end.
            *kept = Kept { what: Some(what.clone()), ..Kept::default() };
        }
        if let Some(why) = &kept.given_up {
            return Got::GivenUp(why.clone());
        }
        while let Some((child, _)) = kept.idle.pop() {
            if !child.is_gone() {
                return Got::Idle(child);
            }
        }
        Got::After(kept.starts.wait(Instant::now()))
    }

    /// One that is free for the next task.
    fn give_back(&self, child: Child, what: &What) {
        let mut kept = self.kept();
        if kept.what.as_ref() != Some(what) || child.is_gone() {
            return;
        }
        let now = Instant::now();
        kept.idle.retain(|(_, since)| now.saturating_duration_since(*since) < UNUSED);
        kept.idle.push((child, now));
    }

    /// What happened to one of this command, if it is still the one.
    fn note<T: Default>(&self, what: &What, happened: impl FnOnce(&mut Kept) -> T) -> T {
        let mut kept = self.kept();
        if kept.what.as_ref() == Some(what) { happened(&mut kept) } else { T::default() }
    }
}

impl super::Exec {
    /// Has a program that stays handle the task.
    pub(super) async fn stay(
        &self,
        command: &str,
        task: &ClaimedTask,
        context: &Context,
        how: &How,
        encoding: Encoding,
        payload: &[u8],
    ) -> Outcome {
        let what = What { command: command.to_owned(), store: how.store.clone() };
        let mut not_shown = 0;
        let (child, reply) = loop {
            let child = match self.program(context, how, &what).await {
                Ok(child) => child,
                Err(Without::Stopped) => {
                    return Outcome::Error("the handler was stopped".to_owned());
                }
                Err(Without::Error(error)) => return Outcome::Error(error),
                Err(Without::CannotRun(why)) => {
                    self.broken.tell(&context.queue, why);
                    return Outcome::Release { at: None, started: false };
                }
            };
            let line = match line::of_task(task, context, encoding, payload) {
                Ok(line) => line,
                Err(error) => {
                    self.stays.give_back(child, &what);
                    return Outcome::Error(error);
                }
            };
            let reply = tokio::select! {
                reply = child.run(context, line) => Some(reply),
                () = context.cancelled() => None,
            };
            match reply {
                // It ended before it saw the task: that costs the task nothing, once.
                Some(Reply::NotShown) if not_shown < NOT_SHOWN_MOST => {
                    not_shown += 1;
                    child.gone().await;
                }
                reply => break (child, reply),
            }
        };
        match reply {
            Some(Reply::Said(said, words)) => {
                self.stays.note(&what, |kept| kept.starts.answered());
                self.stays.give_back(child, &what);
                self.meant(said, words, task, context).await
            }
            Some(Reply::Fell(why)) => {
                self.stays.note(&what, |kept| kept.starts.fell(Instant::now()));
                child.gone().await;
                Outcome::Error(why)
            }
            Some(Reply::NotShown) => {
                self.stays.note(&what, |kept| kept.starts.fell(Instant::now()));
                child.gone().await;
                Outcome::Error("the program is ready and does not read tasks".to_owned())
            }
            None => {
                self.stays.note(&what, |kept| kept.starts.fell(Instant::now()));
                child.gone().await;
                Outcome::Error("the handler was stopped".to_owned())
            }
        }
    }

    /// A program that is ready: one that is free, or another.
    async fn program(&self, context: &Context, how: &How, what: &What) -> Result<Child, Without> {
        loop {
            match self.stays.get(what) {
                Got::Idle(child) => return Ok(child),
                Got::GivenUp(why) => return Err(Without::CannotRun(why)),
                Got::After(wait) => tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = context.cancelled() => return Err(Without::Stopped),
                },
            }
            let mut child = self.start(context, how, what).await?;
            let ready = tokio::select! {
                ready = child.ready() => ready,
                () = context.cancelled() => {
                    // It may take longer to start than this task has time: the next
                    // one finds it ready.
                    let (stays, what) = (self.stays.clone(), what.clone());
                    tokio::spawn(async move {
                        if child.ready().await.is_ok() {
                            stays.give_back(child, &what);
                        }
                    });
                    return Err(Without::Stopped);
                }
            };
            let Err(unready) = ready else {
                self.stays.note(what, |kept| kept.starts.ready());
                return Ok(child);
            };
            child.gone().await;
            let now = Instant::now();
            let enough = self.stays.note(what, |kept| {
                let enough = kept.starts.fell_unready(now) || unready.cannot_run;
                if enough {
                    kept.given_up = Some(unready.why.clone());
                }
                enough
            });
            if !enough {
                crate::stderr::say(format_args!(
                    "queue {}: its program is started again: {}",
                    context.queue, unready.why
                ));
            }
        }
    }

    async fn start(&self, context: &Context, how: &How, what: &What) -> Result<Child, Without> {
        let failed = |error| Without::Error(format!("sh could not be started: {error}"));
        let command = self.staying(&what.command, how);
        let started = starter::start(command).await.map_err(failed)?;
        let (hints, mut hinted) = mpsc::unbounded_channel::<String>();
        // Not to hold what holds the program.
        let stays = Arc::downgrade(&self.stays.0);
        let (what, queue) = (what.clone(), context.queue.clone());
        // Ends with the program, which has the other end.
        tokio::spawn(async move {
            while let Some(hint) = hinted.recv().await {
                let Some(stays) = stays.upgrade().map(Stays) else { return };
                // Once is enough: the next ones are as silent.
                if !stays.note(&what, |kept| std::mem::replace(&mut kept.hinted, true)) {
                    crate::stderr::say(format_args!("queue {queue}: its program: {hint}"));
                }
            }
        });
        let patience = Patience { ready: READY, hint: HINT };
        let closing = self.children.closing.0.subscribe();
        Ok(Child::of(started, &self.children.leaving, closing, hints, patience))
    }

    /// What the program's word makes of the task.
    async fn meant(
        &self,
        said: Said,
        words: String,
        task: &ClaimedTask,
        context: &Context,
    ) -> Outcome {
        let ended = match said {
            Said::Ended(ended) => ended,
            Said::Unclear(why) => return Outcome::Error(why),
            Said::Progress(_) => return Outcome::Error("the program did not end it".to_owned()),
        };
        let error = |ended: &line::Ended| match &ended.error {
            Some(error) => error.clone(),
            None if words.is_empty() => "no error was given".to_owned(),
            None => words.clone(),
        };
        match ended.how {
            line::How::Done => {
                match ended.result.map(|result| context.result_payload(Payload::json(result))) {
                    Some(Err(error)) => Outcome::Fail(error.to_string()),
                    Some(Ok(())) | None => Outcome::Done,
                }
            }
            line::How::Error => Outcome::Error(error(&ended)),
            line::How::Fail => Outcome::Fail(error(&ended)),
            line::How::Retry => {
                let reason = ended.error.or((!words.is_empty()).then_some(words));
                let at = When::After(ended.after.unwrap_or_default());
                Outcome::Retry { at, reason }
            }
            line::How::Release => {
                let after = match ended.after {
                    Some(after) => after,
                    None => self.wait_of(task, context).await,
                };
                Outcome::Release { at: Some(When::After(after)), started: true }
            }
        }
    }
}

//! One program that stays, from its start to its end: ready, then a task at a time.
//! A task of the runtime's own lives its life, so that it is heard while it has
//! nothing to do, too.

use std::time::Duration;

use gristmill::worker::Context;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::super::group::{Group, Leaving};
use super::super::{CANNOT_RUN, LAST_WORDS};
use super::line;
use super::pipes::{Heard, Pipes};
use gristmill_contract::duration;

/// How long it may take to say that it is ready.
pub(super) const READY: Duration = Duration::from_secs(10);
/// Silence after which it is asked whether it flushes.
pub(super) const HINT: Duration = Duration::from_secs(5);

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) ready: Duration,
    pub(super) hint: Duration,
}

/// A program that is there, or was when it was heard of last.
#[derive(Debug)]
pub(super) struct Child {
    orders: mpsc::Sender<Order>,
    ready: Option<oneshot::Receiver<Result<(), Unready>>>,
    /// Says nothing: the other end goes with the program.
    gone: oneshot::Receiver<()>,
}

/// Why a program never became ready.
#[derive(Debug)]
pub(super) struct Unready {
    pub(super) why: String,
    /// There is no such command, or it may not be run.
    pub(super) cannot_run: bool,
}

/// What is ordered of a program: one task.
#[derive(Debug)]
struct Order {
    line: Vec<u8>,
    context: Context,
    reply: oneshot::Sender<Reply>,
}

/// What became of a task.
#[derive(Debug)]
pub(super) enum Reply {
    /// The program's word, and what it said to standard error since the task's line.
    Said(line::Said, String),
    /// The program died of it, or had to be killed.
    Fell(String),
    /// The program had gone before the task was shown to it.
    NotShown,
}

/// Tells that nothing came of a program for long.
pub(super) type Hints = mpsc::UnboundedSender<String>;

impl Child {
    /// Has a started program live. `closing` ends it when it has nothing to do.
    pub(super) fn of(
        mut child: tokio::process::Child,
        leaving: &Leaving,
        closing: watch::Receiver<bool>,
        hints: Hints,
        patience: Patience,
    ) -> Self {
        let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let pipes = Pipes::new(Group::of(child, leaving), out, err);
        let (orders, received) = mpsc::channel(1);
        let (tells, ready) = oneshot::channel();
        let (here, gone) = oneshot::channel();
        let life = Life {
            pipes,
            orders: received,
            closing,
            hints,
            patience,
            leaving: leaving.clone(),
            _here: here,
        };
        // Among those that are waited for, so that none outlives us.
        leaving.wait_for(life.live(stdin, tells));
        Child { orders, ready: Some(ready), gone }
    }

    /// Waits until it is ready. May be dropped while it waits.
    pub(super) async fn ready(&mut self) -> Result<(), Unready> {
        let Some(ready) = &mut self.ready else { return Ok(()) };
        let ended =
            |_| Err(Unready { why: "it ended with its worker".to_owned(), cannot_run: false });
        let ready = ready.await.unwrap_or_else(ended);
        self.ready = None;
        ready
    }

    /// Whether it has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.orders.is_closed()
    }

    /// Gives it a task and waits for what it says. Dropped while it waits, the program
    /// is killed.
    pub(super) async fn run(&self, context: &Context, line: Vec<u8>) -> Reply {
        let (reply, answer) = oneshot::channel();
        let context = context.clone();
        if self.orders.send(Order { line, context, reply }).await.is_err() {
            return Reply::NotShown;
        }
        // Dropped unseen only while it was on its way to one that had gone.
        answer.await.unwrap_or(Reply::NotShown)
    }

    /// Waits until it and all it started are gone.
    pub(super) async fn gone(self) {
        drop(self.orders);
        let _ = self.gone.await;
    }
}

/// What a program's life needs.
struct Life {
    pipes: Pipes,
    orders: mpsc::Receiver<Order>,
    closing: watch::Receiver<bool>,
    hints: Hints,
    patience: Patience,
    leaving: Leaving,
    _here: oneshot::Sender<()>,
}

/// How a life goes on.
enum Next {
    /// Another task may come.
    On,
    /// It is to end: its standard input is closed first.
    Bye,
    /// It is to be killed, or has ended.
    Kill,
}

impl Life {
    async fn live(
        mut self,
        stdin: Option<ChildStdin>,
        tells: oneshot::Sender<Result<(), Unready>>,
    ) {
        let mut next = match self.until_ready().await {
            Ok(()) => {
                let _ = tells.send(Ok(()));
                Next::On
            }
            Err(unready) => {
                let why = with_words(&unready.why, &self.pipes.words());
                // Whoever started it may have gone.
                let _ = tells.send(Err(Unready { why, ..unready }));
                Next::Kill
            }
        };
        let Some(mut stdin) = stdin else { return self.pipes.stop().await };
        while matches!(next, Next::On) {
            next = self.idle(&mut stdin).await;
        }
        drop(stdin);
        let Life { mut pipes, orders, leaving, _here, .. } = self;
        // What was ordered meanwhile is told that it was not shown.
        drop(orders);
        if matches!(next, Next::Bye) {
            pipes.ends_within(leaving.grace()).await;
        }
        pipes.stop().await;
    }

    /// Waits for the first line.
    async fn until_ready(&mut self) -> Result<(), Unready> {
        let start = Instant::now();
        let mut hinted = false;
        let unready = |why: String| Unready { why, cannot_run: false };
        loop {
            tokio::select! {
                biased;
                heard = self.pipes.next() => return match heard {
                    Heard::Line(line) => line::is_ready(&line).map_err(unready),
                    Heard::Broke(why) => Err(unready(why)),
                    Heard::Ended => {
                        let code = self.pipes.code();
                        let cannot_run = code.is_some_and(|code| CANNOT_RUN.contains(&code));
                        let why = format!("it ended before it was ready: {}", self.pipes.end());
                        Err(Unready { why, cannot_run })
                    }
                },
                // Nothing is ordered before it is ready: this is the end of who would.
                _ = self.orders.recv() => {
                    return Err(unready("it was not waited for".to_owned()));
                }
                () = closes(&mut self.closing) => {
                    return Err(unready("its worker stopped".to_owned()));
                }
                () = sleep_until(start + self.patience.hint), if !hinted => {
                    hinted = true;
                    self.hint(0, "is not ready");
                }
                () = sleep_until(start + self.patience.ready) => {
                    let within = duration::show(self.patience.ready);
                    return Err(unready(format!("it was not ready within {within}")));
                }
            }
        }
    }

    /// Waits for a task, and runs it.
    async fn idle(&mut self, stdin: &mut ChildStdin) -> Next {
        tokio::select! {
            biased;
            order = self.orders.recv() => match order {
                Some(order) => self.task(order, stdin).await,
                None => Next::Bye,
            },
            () = closes(&mut self.closing) => Next::Bye,
            heard = self.pipes.next() => {
                let why = match heard {
                    Heard::Line(_) => "it wrote a line, and it had no task",
                    Heard::Broke(_) => "it wrote without end, and it had no task",
                    Heard::Ended if self.pipes.is_ended_well() => return Next::Kill,
                    Heard::Ended => "it ended, and it had no task",
                };
                crate::stderr::say(format_args!("a program that stays is started again: {why}"));
                Next::Kill
            }
        }
    }

    async fn task(&mut self, order: Order, stdin: &mut ChildStdin) -> Next {
        let Order { line, context, mut reply } = order;
        let id = context.id.to_string();
        self.pipes.turn_page();
        let before = self.pipes.said();
        let (mut written, mut hinted) = (0, false);
        let hint_at = Instant::now() + self.patience.hint;
        let (next, said) = loop {
            let rest = line.get(written..).unwrap_or_default();
            tokio::select! {
                biased;
                () = reply.closed() => return Next::Kill,
                heard = self.pipes.next() => match heard {
                    Heard::Line(answer) => match line::of_program(&answer, &id) {
                        Ok(line::Said::Progress(said)) => {
                            if let Some(said) = said {
                                context.progress(said.done(), said.total(), said.message());
                            }
                        }
                        Ok(said) => {
                            let words = self.pipes.words();
                            // What is not read of the task's line would be taken for the
                            // next one's.
                            let next = if rest.is_empty() { Next::On } else { Next::Kill };
                            break (next, Reply::Said(said, words));
                        }
                        Err(why) => break (Next::Kill, self.fell(&why)),
                    },
                    Heard::Broke(why) => break (Next::Kill, self.fell(&why)),
                    Heard::Ended if written == 0 => break (Next::Kill, Reply::NotShown),
                    Heard::Ended => {
                        let why = format!("the program ended without an answer: {}", self.pipes.end());
                        break (Next::Kill, self.fell(&why));
                    }
                },
                wrote = stdin.write(rest), if !rest.is_empty() => match wrote {
                    Ok(bytes) if bytes > 0 => written += bytes,
                    // It closed its standard input: nothing will be heard of this task.
                    _ if written == 0 => break (Next::Kill, Reply::NotShown),
                    _ => {
                        self.pipes.ends_within(LAST_WORDS).await;
                        let why = format!("the program does not read: {}", self.pipes.end());
                        break (Next::Kill, self.fell(&why));
                    }
                },
                () = sleep_until(hint_at), if !hinted => {
                    hinted = true;
                    self.hint(before, "has not answered");
                }
            }
        };
        let _ = reply.send(said);
        next
    }

    fn fell(&mut self, why: &str) -> Reply {
        let said = self.pipes.words();
        Reply::Fell(with_words(why, &said))
    }

    /// Says what silence often comes from.
    fn hint(&self, before: u64, what: &str) {
        if self.pipes.said() == before {
            let silent = duration::show(self.patience.hint);
            let _ = self.hints.send(format!(
                "it {what} and wrote nothing for {silent}: does it flush its standard output \
                 after each line? (Python: print(…, flush=True) or python3 -u)"
            ));
        }
    }
}

/// Returns when all that has nothing to do is to end.
async fn closes(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

fn with_words(why: &str, said: &str) -> String {
    if said.is_empty() { why.to_owned() } else { format!("{why}: {said}") }
}

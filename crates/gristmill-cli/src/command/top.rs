//! `top`: queues, workers and failures live in a terminal, with keys to act.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use gristmill::port::{Action, Operation, Selection, State, TaskFilter, WorkerId};
use gristmill::{Mill, QueueName, TaskId};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::{Session, Wanted, who};
use crate::args::TopArgs;
use crate::failure::Failure;
use crate::output::{count, time};
use crate::store::Missing;
use crate::top::{Board, Look, Wish, draw, wish};
use gristmill_contract::duration;

/// Failures that are shown.
const FAILURES: usize = 50;
/// How soon a key is heard, and the end of the command by the thread that hears them.
const HEARD: Duration = Duration::from_millis(100);
/// The shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(100);

/// Show it until somebody leaves.
#[derive(Debug)]
pub(crate) struct Top {
    every: Duration,
    by: String,
}

impl Top {
    pub(crate) fn meant(args: TopArgs) -> Result<Self, Failure> {
        let every = duration::parse(&args.every);
        let every = every.map_err(|why| Failure::usage(format!("--every: {why}")))?;
        if every < SHORTEST {
            let least = duration::show(SHORTEST);
            return Err(Failure::usage(format!(
                "--every is too often: at least {least} is needed"
            )));
        }
        Ok(Top { every, by: who(args.by)? })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        let seen = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        if session.output.json || dumb || !seen {
            return Err(Failure::usage(
                "top needs a terminal: 'gristmill stats --watch' prints lines, with --json too",
            ));
        }
        let mill = session.open(Missing::Fail).await?;
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let mut board = Board::new(session.url().to_string(), time::now(), colour);
        let screen = Screen::take()?;
        let shown = self.show(&mill, &mut board, screen).await;
        mill.close().await?;
        shown
    }

    async fn show(
        &self,
        mill: &Mill,
        board: &mut Board,
        mut screen: Screen,
    ) -> Result<(), Failure> {
        let mut keys = heard()?;
        let (says, mut said) = mpsc::unbounded_channel();
        let mut ticks = tokio::time::interval(self.every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut looked = Instant::now();
        loop {
            let wished = tokio::select! {
                _ = ticks.tick(), if !board.frozen => {
                    match look(mill).await {
                        Ok(look) => board.take(look, looked.elapsed()),
                        Err(failure) => board.away = Some(failure.message),
                    }
                    looked = Instant::now();
                    None
                }
                Some(done) = said.recv() => {
                    board.said = Some(done);
                    ticks.reset_immediately();
                    None
                }
                event = keys.recv() => match event {
                    Some(Event::Key(key)) if key.kind != KeyEventKind::Release => wish(board, key),
                    Some(_) => None,
                    // Nobody is there any more.
                    None => Some(Wish::Leave),
                },
            };
            match wished {
                Some(Wish::Leave) => return Ok(()),
                Some(wish) => {
                    // Beside the view: a store may take its time.
                    tokio::spawn(act(mill.clone(), wish, self.by.clone(), says.clone()));
                }
                None => {}
            }
            screen
                .0
                .draw(|frame| draw(board, frame))
                .map_err(|e| Failure::io("the terminal", &e))?;
        }
    }
}

/// The terminal, given back as it was.
struct Screen(DefaultTerminal);

impl Screen {
    fn take() -> Result<Self, Failure> {
        // A panic gives it back as well.
        ratatui::try_init().map(Screen).map_err(|error| Failure::io("the terminal", &error))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// What is typed, heard on a thread of its own.
fn heard() -> Result<UnboundedReceiver<Event>, Failure> {
    let (send, receive) = mpsc::unbounded_channel();
    std::thread::Builder::new()
        .name("gristmill-keys".to_owned())
        .spawn(move || {
            while !send.is_closed() {
                match event::poll(HEARD).and_then(|some| some.then(event::read).transpose()) {
                    Ok(Some(event)) => {
                        // The command ends: nobody listens.
                        let _ = send.send(event);
                    }
                    Ok(None) => {}
                    Err(_) => return,
                }
            }
        })
        .map_err(|error| Failure::io("a thread could not be started", &error))?;
    Ok(receive)
}

async fn look(mill: &Mill) -> Result<Look, Failure> {
    let inspect = mill.inspect();
    let (stats, workers) = (inspect.stats().await?, inspect.workers().await?);
    let mut failed = inspect.failed(None, FAILURES).await?;
    failed.sort_by_key(|task| std::cmp::Reverse(task.failed_at));
    // Who may look need not be told what is wanted of workers.
    let orders = mill.worker_orders().await.unwrap_or_default();
    let quieted = orders.into_iter().filter(|(_, orders)| orders.quiet).map(|(id, _)| id).collect();
    Ok(Look { at: time::now(), stats, workers, failed, quieted })
}

/// Does it, and says how it went.
async fn act(mill: Mill, wish: Wish, by: String, says: UnboundedSender<String>) {
    let done = match wish {
        Wish::Leave => return,
        Wish::Pause(queue, paused) => pause(&mill, &queue, paused, &by).await,
        Wish::RetryQueue(queue) => {
            let queue = Some(queue);
            let filter = TaskFilter { queue, state: Some(State::Failed), ..TaskFilter::default() };
            retry(&mill, Selection::Matching { filter, after: None }, &by).await
        }
        Wish::RetryTask(id) => retry(&mill, Selection::Ids(vec![id]), &by).await,
        Wish::Order(id, wanted) => order(&mill, &id, &wanted, &by).await,
    };
    // The view may be gone.
    let _ = says.send(done.unwrap_or_else(|failure| failure.message));
}

async fn pause(mill: &Mill, queue: &QueueName, paused: bool, by: &str) -> Result<String, Failure> {
    mill.store().pause_queue(queue, paused, by).await?;
    Ok(format!("{queue} {}", if paused { "is paused: what runs finishes" } else { "goes on" }))
}

async fn order(mill: &Mill, id: &WorkerId, wanted: &Wanted, by: &str) -> Result<String, Failure> {
    let workers = mill.inspect().workers().await?;
    match workers.iter().find(|view| view.report.id == *id) {
        Some(view) => wanted.say(mill, view, by).await,
        None => Ok(format!("worker {id} is gone")),
    }
}

async fn retry(mill: &Mill, mut selection: Selection, by: &str) -> Result<String, Failure> {
    let (mut moved, mut others) = (0, 0);
    loop {
        let operation = Operation {
            action: Action::Retry,
            selection: selection.clone(),
            limit: mill.store().limits().page,
            by: by.to_owned(),
            note: None,
            start: gristmill::port::Start::Now,
        };
        let report = mill.store().operate(operation).await?;
        moved += report.moved();
        others += report.answers.len() - report.moved();
        let (Some(next), Selection::Matching { after, .. }) = (report.next, &mut selection) else {
            break;
        };
        let next: TaskId = next;
        *after = Some(next);
    }
    let moved = count(moved as u64, "task");
    let others = match others {
        0 => String::new(),
        n => format!(", {n} stay as they are ('gristmill retry' says why)"),
    };
    Ok(format!("{moved} retried{others}"))
}

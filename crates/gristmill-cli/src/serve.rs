//! Running workers until they are drained or told to stop, and telling how
//! tasks fare meanwhile.

use std::net::SocketAddr;
use std::time::Duration;

use gristmill::port::observed::StoreEvent;
use gristmill::port::{Became, SettleAnswer};
use gristmill::schedule::Scheduler;
use gristmill::signal::{SAME_WISH, Signals};
use gristmill::worker::{WorkReport, Worker};
use gristmill::{Mill, QueueName, TaskId};
use gristmill_server::{Listen, ListenError, Port, Server, Tokens};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{broadcast, oneshot, watch};
use tokio::task::JoinSet;

use crate::claimed::Claimed;
use crate::exec::{BrokenHandler, Children, Leaving, Runs};
use crate::failure::{Exit, Failure};
use crate::notify;
use crate::output::{cut, last_line, time};
pub(crate) use crate::stderr::say;
use gristmill_contract::duration;

/// How long the store may take to end its own threads, and how long one that did
/// not answer before.
const CLOSES: (Duration, Duration) = (Duration::from_secs(5), Duration::from_millis(200));

/// What is told of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tell {
    /// Every end of an attempt.
    All,
    /// Only those that did not end in done.
    Trouble,
}

/// A worker to run, the queues it serves, where it hears that a queue's command
/// cannot be run, and what it is ordered while it runs.
pub(crate) struct Staffed {
    pub(crate) worker: Worker,
    queues: Vec<QueueName>,
    broken: UnboundedReceiver<BrokenHandler>,
    orders: UnboundedReceiver<Order>,
}

/// What a reload wants of a worker that runs.
#[derive(Debug)]
pub(crate) enum Order {
    /// So many processors.
    Processors(usize),
    /// This queue's command was changed: if it could not be run, it is tried again.
    Serve(QueueName),
    /// No more claims; what runs finishes.
    Leave,
}

/// Why a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// It was to end: a signal, or everything is drained.
    AsMeant,
    /// It was ordered to leave; the process goes on.
    Left,
    /// No queue is left whose command can be run.
    Broken,
}

impl Staffed {
    /// One that nobody orders about.
    pub(crate) fn new(
        worker: Worker,
        queues: Vec<QueueName>,
        broken: UnboundedReceiver<BrokenHandler>,
    ) -> Self {
        let (_, orders) = unbounded_channel();
        Staffed { worker, queues, broken, orders }
    }

    /// One that hears these orders.
    pub(crate) fn ordered(self, orders: UnboundedReceiver<Order>) -> Self {
        Staffed { orders, ..self }
    }

    /// Works until the stop is asked for, everything is drained, it is to leave, or no
    /// queue is left whose command can be run.
    async fn run(self, stopping: impl Future<Output = ()>) -> Result<(WorkReport, Ended), Failure> {
        let Staffed { worker, queues, mut broken, mut orders } = self;
        let mut serving = queues;
        let mut stopping = std::pin::pin!(stopping);
        let handle = tokio::select! {
            biased;
            // The store may be away already.
            () = &mut stopping => return Ok((WorkReport::default(), Ended::AsMeant)),
            handle = worker.start() => handle?,
        };
        while !serving.is_empty() {
            tokio::select! {
                report = handle.ended() => return Ok((report?, Ended::AsMeant)),
                () = &mut stopping => return Ok((handle.stop().await?, Ended::AsMeant)),
                Some(heard) = broken.recv() => {
                    say(format_args!(
                        "queue {}: its command cannot be run ({}); its tasks were given back and \
                         wait until the command is corrected and this is started again",
                        heard.queue, heard.why
                    ));
                    handle.serve(heard.queue.as_str(), false)?;
                    serving.retain(|queue| *queue != heard.queue);
                }
                Some(order) = orders.recv() => match order {
                    Order::Processors(processors) => handle.set_processors(processors),
                    Order::Serve(queue) => {
                        handle.serve(queue.as_str(), true)?;
                        serving.retain(|served| *served != queue);
                        serving.push(queue);
                    }
                    Order::Leave => return Ok((handle.stop().await?, Ended::Left)),
                },
            }
        }
        Ok((handle.stop().await?, Ended::Broken))
    }
}

/// How the workers ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Served {
    pub(crate) report: WorkReport,
    /// A signal asked for the end.
    pub(crate) asked: bool,
    /// A second one ended the patience.
    pub(crate) forced: bool,
}

impl Served {
    /// What the process says last of a stop that was not waited for, or of a
    /// drain that was cut off.
    pub(crate) fn interrupted(&self, drains: bool) -> Result<(), Failure> {
        let left = &self.report.left;
        if self.forced {
            return Err(Failure::interrupted("stopped by force: what ran was given back"));
        }
        if !left.is_empty() {
            let named: Vec<String> = left
                .tasks
                .iter()
                .take(10)
                .map(|task| format!("{} #{}", task.queue, task.id))
                .collect();
            return Err(Failure::interrupted(format!(
                "stopped without waiting any longer: {} still run and {} are not on record ({}); \
                 they come back when their leases end",
                left.running,
                left.unsettled,
                named.join(", ")
            )));
        }
        if self.asked && drains {
            return Err(Failure::interrupted("stopped before the queues were drained"));
        }
        Ok(())
    }
}

/// Takes the port to listen at, if any: before a store is opened, so that a start that
/// cannot succeed changes nothing.
pub(crate) async fn take(listen: Listen) -> Result<Option<Port>, Failure> {
    match listen {
        Listen::Off => Ok(None),
        Listen::At(address) => match Port::take(address).await {
            Ok(port) => Ok(Some(port)),
            Err(why) => Err(Failure::new(Exit::Wrong, "listen", why.to_string())),
        },
    }
}

/// Refuses to serve others than this machine as long as nothing tells them apart.
pub(crate) async fn admit(mill: &Mill, reachable: Option<SocketAddr>) -> Result<(), Failure> {
    match reachable {
        Some(address) if !Tokens::of(mill).any().await? => Err(no_token(address)),
        _ => Ok(()),
    }
}

/// Why others are not served.
pub(crate) fn no_token(address: SocketAddr) -> Failure {
    Failure::new(Exit::Wrong, "no_token", ListenError::NoToken(address).to_string())
}

/// What runs beside the workers for as long as they do.
#[derive(Default)]
pub(crate) struct Beside {
    pub(crate) scheduler: Option<Scheduler>,
    pub(crate) http: Vec<Server>,
    /// Workers that a reload hires.
    pub(crate) hires: Option<UnboundedReceiver<Staffed>>,
}

impl Beside {
    /// The next worker that is hired, if any ever is.
    async fn hired(hires: &mut Option<UnboundedReceiver<Staffed>>) -> Option<Staffed> {
        match hires {
            Some(hires) => hires.recv().await,
            None => None,
        }
    }
}

/// Runs the workers to their end, and what is beside them, and closes the
/// store. The first signal that asks for it stops them, the second one ends the
/// process soon, the third at once.
pub(crate) async fn serve(
    signals: &Signals,
    mill: &Mill,
    workers: Vec<Staffed>,
    beside: Beside,
    children: &Children,
    tell: Tell,
) -> Result<Served, Failure> {
    let Beside { scheduler, http, mut hires } = beside;
    let Children { leaving, runs, closing, .. } = children;
    workers.iter().for_each(|staffed| signals.stops(&staffed.worker));
    scheduler.iter().for_each(|scheduler| signals.stops_scheduler(scheduler));
    let ends = leaving.clone();
    signals.before_the_end(move || ends.kill());
    let listening = tokio::spawn(announce(signals.asked(), signals.forced(), leaving.clone()));
    let (over, ended) = oneshot::channel();
    let telling = tokio::spawn(tell_of(mill.clone(), mill.watch(), runs.clone(), tell, ended));
    let mut running = JoinSet::new();
    for staffed in workers {
        running.spawn(staffed.run(signals.asked()));
    }
    let (end_schedules, schedules_end) = oneshot::channel::<()>();
    let scheduling = scheduler.map(|scheduler| {
        let stopping = signals.asked();
        tokio::spawn(scheduler.run(async move {
            tokio::select! {
                () = stopping => {}
                _ = schedules_end => {}
            }
        }))
    });
    let (end_http, http_ends) = watch::channel(());
    let mut answering = JoinSet::new();
    for http in http {
        let (stopping, mut ends) = (signals.asked(), http_ends.clone());
        answering.spawn(http.run(async move {
            tokio::select! {
                () = stopping => {}
                // Only its end is ever heard.
                _ = ends.changed() => {}
            }
        }));
    }
    let mut served = Served::default();
    let mut failure = None;
    // Nobody works here, and that is as it should be: schedules put, and HTTP serves,
    // for workers elsewhere.
    let mut idle = running.is_empty();
    while idle || !running.is_empty() {
        tokio::select! {
            Some(ended) = running.join_next() => match ended {
                Ok(Ok((report, how))) => {
                    served.report.add(&report);
                    idle = how == Ended::Left && running.is_empty();
                    if how == Ended::Broken {
                        let why = "a handler's command cannot be run: see above";
                        failure = Some(Failure::new(Exit::Wrong, "no_handler", why));
                    }
                }
                Ok(Err(error)) => failure = Some(error),
                Err(error) => {
                    let why = format!("a worker ended: {error}");
                    failure = Some(Failure::new(Exit::Wrong, "wrong", why));
                }
            },
            Some(staffed) = Beside::hired(&mut hires) => {
                idle = false;
                signals.stops(&staffed.worker);
                running.spawn(staffed.run(signals.asked()));
            }
            () = signals.asked(), if idle => break,
        }
    }
    // Without workers there is nobody left to fire for.
    drop(end_schedules);
    drop(end_http);
    while let Some(ended) = answering.join_next().await {
        if let Err(error) = ended {
            let why = format!("HTTP ended: {error}");
            failure = failure.or(Some(Failure::new(Exit::Wrong, "wrong", why)));
        }
    }
    if let Some(scheduling) = scheduling {
        match scheduling.await {
            Ok(Ok(report)) => tracing::info!(fired = report.fired, "schedules ended"),
            Ok(Err(error)) => failure = failure.or(Some(Failure::from(error))),
            Err(error) => {
                let why = format!("the scheduler ended: {error}");
                failure = failure.or(Some(Failure::new(Exit::Wrong, "wrong", why)));
            }
        }
    }
    // Those that stay have nothing to do any more.
    closing.close();
    leaving.gone().await;
    (served.asked, served.forced) = (signals.count() > 0, signals.count() > 1);
    signals.ended(&served.report);
    listening.abort();
    // What was settled last is still to be told.
    drop(over);
    let _ = telling.await;
    let within = if served.report.left.unsettled == 0 { CLOSES.0 } else { CLOSES.1 };
    match tokio::time::timeout(within, mill.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => failure = failure.or(Some(error.into())),
        // It ends with the process.
        Err(_) => tracing::warn!("the store did not close within {within:?}"),
    }
    match failure {
        // Whoever stops the others knows of the broken one by now.
        Some(failure) if failure.code != "no_handler" || !served.asked => Err(failure),
        _ => Ok(served),
    }
}

/// Says what a signal does, as it comes.
async fn announce(
    asked: impl Future<Output = ()>,
    forced: impl Future<Output = ()>,
    leaving: Leaving,
) {
    asked.await;
    notify::tell(notify::STOPPING);
    leaving.hurry();
    tokio::time::sleep(SAME_WISH).await;
    say("stopping: what runs may finish within 30 seconds; once more stops it now");
    forced.await;
    say("stopping now: what still runs is given back");
}

/// Tells of each attempt that ends, until all is over. When they end faster
/// than lines can be written, some are left out: the store never waits for its
/// watchers.
async fn tell_of(
    mill: Mill,
    mut events: broadcast::Receiver<StoreEvent>,
    runs: Runs,
    tell: Tell,
    mut over: oneshot::Receiver<()>,
) {
    let mut claimed = Claimed::default();
    loop {
        let event = tokio::select! {
            biased;
            event = events.recv() => event,
            _ = &mut over => return,
        };
        match event {
            Ok(StoreEvent::Claimed { queue, tasks, .. }) => claimed.claimed(&queue, tasks),
            Ok(StoreEvent::Settled { id, answer }) => {
                let took = runs.take(id).map(duration::show);
                let Some(queue) = claimed.settled(id) else { continue };
                // Somebody else's success, over HTTP, is theirs to tell.
                let tell = if took.is_some() { tell } else { Tell::Trouble };
                if let Some(line) = ended(&mill, id, &answer, tell).await {
                    // One that was given back unstarted took no time.
                    let took = took.map_or_else(String::new, |took| format!(" (after {took})"));
                    say(format_args!("{queue} #{id} {line}{took}"));
                }
            }
            Ok(_) => {}
            Err(broadcast::error::RecvError::Lagged(_)) => {
                claimed.forget();
                runs.forget();
            }
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

async fn ended(mill: &Mill, id: TaskId, answer: &SettleAnswer, tell: Tell) -> Option<String> {
    let SettleAnswer::Recorded { became, .. } = answer else {
        return matches!(answer, SettleAnswer::LeaseLost).then(|| "lost its lease".to_owned());
    };
    let why = || async {
        let task = mill.inspect().task(id).await.ok().flatten();
        let error = task.and_then(|task| task.history.last().and_then(|last| last.error.clone()));
        error.map_or_else(String::new, |error| format!(": {}", cut(last_line(&error), 120)))
    };
    match became {
        Became::Done => (tell == Tell::All).then(|| "done".to_owned()),
        Became::Pending { run_at } => {
            // Given back in its old place, it was due before.
            let now = time::now();
            let due = time::relative((*run_at).max(now), now);
            Some(format!("again {due}{}", why().await))
        }
        Became::Failed => Some(format!("failed{}", why().await)),
        Became::Cancelled => Some("cancelled".to_owned()),
    }
}

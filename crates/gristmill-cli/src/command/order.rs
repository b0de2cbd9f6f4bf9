//! `workers quiet|resume|stop|move`: what somebody wants of a worker that runs elsewhere.

use gristmill::port::WorkerView;
use gristmill::worker::Orders;
use gristmill::{Mill, QueueName};
use gristmill_server::Deed;
use serde_json::json;

use super::{Session, tell, who};
use crate::args::{WorkerArgs, WorkersCommand};
use crate::failure::{Exit, Failure};
use crate::store::Missing;

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    Quiet,
    Resume,
    Stop,
    /// One more processor for the queue; without one, all rotate.
    Move(Option<QueueName>),
}

/// Have a worker do it.
#[derive(Debug)]
pub(crate) struct Order {
    worker: String,
    wanted: Wanted,
    by: String,
}

impl Wanted {
    /// The word for it in the audit log.
    pub(crate) const fn action(&self) -> &'static str {
        match self {
            Wanted::Quiet => "workers.quiet",
            Wanted::Resume => "workers.resume",
            Wanted::Stop => "workers.stop",
            Wanted::Move(Some(_)) => "workers.move",
            Wanted::Move(None) => "workers.rotate",
        }
    }

    /// Says it to the worker. Returns what was said, in words.
    pub(crate) async fn say(
        &self,
        mill: &Mill,
        view: &WorkerView,
        by: &str,
    ) -> Result<String, Failure> {
        let (report, id) = (&view.report, &view.report.id);
        if let Wanted::Move(Some(queue)) = self
            && !report.queues.contains(queue)
        {
            let why = format!("worker {id} has no handler for {queue}: it serves other queues");
            return Err(Failure::new(Exit::Refused, "unknown_queue", why));
        }
        let change = |orders: &mut Orders| match self {
            Wanted::Quiet => orders.quiet = true,
            Wanted::Resume => orders.quiet = false,
            Wanted::Stop => orders.stop = true,
            Wanted::Move(None) => orders.moved.clear(),
            Wanted::Move(Some(queue)) => {
                orders.move_one(report, queue);
            }
        };
        mill.order_worker(id, change).await?;
        let deed = Deed { target: Some(id.to_string()), ..Deed::default() };
        tell(mill, by, self.action(), deed).await;
        let words = match self {
            Wanted::Quiet => "was asked to be quiet: what runs finishes".to_owned(),
            Wanted::Resume => "was asked to go on".to_owned(),
            Wanted::Stop => "was asked to stop: what runs finishes".to_owned(),
            Wanted::Move(None) => "was asked to let its processors go round".to_owned(),
            Wanted::Move(Some(queue)) => format!("was asked for one more processor on {queue}"),
        };
        Ok(format!("worker {id} {words}"))
    }
}

impl Order {
    pub(crate) fn meant(command: WorkersCommand) -> Result<Self, Failure> {
        let (WorkerArgs { worker, by }, wanted) = match command {
            WorkersCommand::Quiet(which) => (which, Wanted::Quiet),
            WorkersCommand::Resume(which) => (which, Wanted::Resume),
            WorkersCommand::Stop(which) => (which, Wanted::Stop),
            WorkersCommand::Move(args) => {
                let queue = args.queue.as_deref().map(QueueName::new).transpose()?;
                (args.which, Wanted::Move(queue))
            }
        };
        Ok(Order { worker, wanted, by: who(by)? })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let workers = mill.inspect().workers().await?;
        let mut meant =
            workers.iter().filter(|view| view.report.id.as_str().starts_with(&self.worker));
        let view = match (meant.next(), meant.next()) {
            (Some(view), None) => view,
            (Some(_), Some(_)) => {
                let why = format!("several workers begin with '{}': say more of it", self.worker);
                return Err(Failure::usage(why));
            }
            (None, _) => {
                let why = format!(
                    "no worker '{}' has reported lately: 'gristmill workers' lists them",
                    self.worker
                );
                return Err(Failure::new(Exit::Refused, "unknown_worker", why));
            }
        };
        let said = self.wanted.say(&mill, view, &self.by).await?;
        let id = view.report.id.to_string();
        mill.close().await?;
        session.output.either(&json!({ "worker": id, "asked": self.wanted.action() }), said)
    }
}

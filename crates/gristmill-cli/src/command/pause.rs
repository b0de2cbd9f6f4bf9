//! `pause` and `resume`: claims of queues stop and go on.

use gristmill::QueueName;
use serde_json::json;

use gristmill_server::Deed;

use super::{Session, tell, who};
use crate::args::PauseArgs;
use crate::failure::Failure;
use crate::store::Missing;

/// Pause or resume these queues.
#[derive(Debug)]
pub(crate) struct Pause {
    queues: Vec<QueueName>,
    paused: bool,
    by: String,
}

impl Pause {
    pub(crate) fn meant(args: PauseArgs, paused: bool) -> Result<Self, Failure> {
        let queues =
            args.queues.iter().map(|name| QueueName::new(name)).collect::<Result<Vec<_>, _>>()?;
        Ok(Pause { queues, paused, by: who(args.by)? })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        // All names are looked at before the first queue is touched.
        for queue in &self.queues {
            mill.inspect().queue(queue.as_str()).await?;
        }
        for queue in &self.queues {
            mill.store().pause_queue(queue, self.paused, &self.by).await?;
            let action = if self.paused { "queues.pause" } else { "queues.resume" };
            let name = Some(queue.to_string());
            let deed = Deed { target: name.clone(), queue: name, ..Deed::default() };
            tell(&mill, &self.by, action, deed).await;
        }
        mill.close().await?;
        if session.output.json {
            let paused: Vec<_> = self
                .queues
                .iter()
                .map(|queue| json!({ "queue": queue.as_str(), "paused": self.paused }))
                .collect();
            return session.output.value(&paused);
        }
        for queue in &self.queues {
            let line = if self.paused {
                format!(
                    "{queue} is paused: puts go on, nothing is claimed until 'gristmill resume {queue}'"
                )
            } else {
                format!("{queue} goes on")
            };
            session.output.line(line)?;
        }
        Ok(())
    }
}

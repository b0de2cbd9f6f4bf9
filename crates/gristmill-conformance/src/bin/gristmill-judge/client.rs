//! A client's process.

use std::sync::Arc;
use std::time::Duration;

use gristmill_conformance::judge::{Client, Leave};

use crate::args::ClientOrder;
use crate::{Result, store};

/// Opens the store and does what the role does, until the run's word to leave, or
/// until who started it is gone.
pub(crate) fn run(order: &ClientOrder) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    // Who runs under a tracer is not its child; so it is told by a file.
    let pid = order.folder.join(format!("{}.pid", order.name));
    std::fs::write(&pid, std::process::id().to_string()).map_err(|error| error.to_string())?;
    let leave = leave(order);
    runtime.block_on(async {
        let patience = Duration::from_secs(60);
        let opened =
            store::open_at_last(&order.store, order.clock.as_deref(), patience, &*leave).await;
        let mill = match opened {
            Ok(mill) => mill,
            // Told to leave before the store could be opened.
            Err(_) if leave() => return Ok(()),
            Err(why) => return Err(why),
        };
        let client =
            Client::new(store::verbs(&mill), &order.folder, &order.name, order.seed, leave)
                .map_err(|error| error.to_string())?;
        client.rests(!order.restless).run(order.role).await;
        let _ = tokio::time::timeout(Duration::from_secs(5), mill.store().close()).await;
        Ok(())
    })
}

fn leave(order: &ClientOrder) -> Leave {
    let all = order.folder.join("leave");
    let me = order.folder.join(format!("{}.leave", order.name));
    let parent = rustix::process::getppid();
    Arc::new(move || all.exists() || me.exists() || rustix::process::getppid() != parent)
}

//! The one thread that starts programs.
//!
//! Linux ends a program with the *thread* that started it, not with its process.
//! A thread of the runtime may end at any time; this one lives as long as we do.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

struct Order {
    command: Command,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
}

static STARTER: OnceLock<Option<Sender<Order>>> = OnceLock::new();

/// Starts the program on the thread that stays.
pub(super) async fn start(command: Command) -> io::Result<Child> {
    let gone = || io::Error::other("the thread that starts programs is gone");
    let orders = STARTER.get_or_init(serve).as_ref().ok_or_else(gone)?;
    let (reply, answer) = oneshot::channel();
    let order = Order { command, runtime: Handle::current(), reply };
    orders.send(order).map_err(|_| gone())?;
    answer.await.map_err(|_| gone())?
}

fn serve() -> Option<Sender<Order>> {
    let (orders, received) = channel::<Order>();
    let started = std::thread::Builder::new().name("gristmill-exec".to_owned()).spawn(move || {
        for mut order in received {
            // A child's end is heard of through the runtime.
            let _entered = order.runtime.enter();
            let child = order.command.spawn();
            // Whoever asked may have been dropped: then so is the child's
            // handle, and the program is not one of ours any more.
            if let Err(Ok(mut child)) = order.reply.send(child) {
                let _ = child.start_kill();
            }
        }
    });
    started.ok().map(|_| orders)
}

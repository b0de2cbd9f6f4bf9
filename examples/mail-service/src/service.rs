//! The service: a worker over all queues.

use gristmill::Mill;
use gristmill::manager::Manager;
use gristmill::worker::Worker;

use crate::handlers::Mailer;
use crate::queues::Handlers;

/// A worker that serves every queue: in rotation, or as a manager says.
pub fn worker(mill: &Mill, mailer: &Mailer, managed: bool) -> Worker {
    let handlers = Handlers {
        emails: mailer.clone(),
        newsletters: mailer.clone(),
        undelivered: mailer.clone(),
    };
    let worker = handlers.worker(mill);
    if managed { worker.manager(Manager::new(mill)) } else { worker }
}

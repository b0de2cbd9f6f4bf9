//! The far end of a connection: it is driven by a task of its own, which hears
//! what the server says by itself, and lets go of a server that is silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::poll_fn;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::AsyncMessage;

use crate::driver::Driver;
use crate::server::Link;

/// How long a connection that nobody needs any more may take to end in order.
const FAREWELL: Duration = Duration::from_secs(5);

/// The part of the server that stops waiting for standbys, when somebody tells
/// it to, and commits all the same. Its words are translated; this is not.
const GIVES_UP_STANDBYS: &str = "SyncRepWaitForLSN";

/// The near end of the task. Without it the connection ends in order, if the
/// server answers, and else at once.
#[derive(Debug)]
pub(crate) struct Line {
    cut: Option<oneshot::Sender<()>>,
    is_unsynced: Arc<AtomicBool>,
    refuses_writes: Arc<AtomicBool>,
}

impl Line {
    /// Drives the connection, and passes notifications on.
    pub(crate) fn start(
        driver: &Driver,
        mut link: Link,
        heard: Option<mpsc::Sender<String>>,
    ) -> Self {
        let (cut, end) = oneshot::channel();
        let is_unsynced = Arc::new(AtomicBool::new(false));
        let refuses_writes = Arc::new(AtomicBool::new(false));
        let (unsynced, refuses) = (is_unsynced.clone(), refuses_writes.clone());
        driver.spawn(async move {
            let drive = async move {
                let listens = heard.is_some();
                let mut next = async || {
                    poll_fn(|cx| {
                        let message = link.poll_message(cx);
                        // Whoever writes over its connection learns it by its answer.
                        if listens {
                            refuses.store(says_read_only(&link), Ordering::Release);
                        }
                        message
                    })
                    .await
                };
                while let Some(message) = next().await {
                    match message {
                        Ok(AsyncMessage::Notice(notice)) => {
                            // It comes before the answer that it is about.
                            if notice.routine() == Some(GIVES_UP_STANDBYS) {
                                unsynced.store(true, Ordering::Release);
                            }
                            tracing::debug!(notice = notice.message(), "PostgreSQL says");
                        }
                        Ok(AsyncMessage::Notification(notice)) => {
                            let Some(heard) = &heard else { continue };
                            if heard.send(notice.payload().to_owned()).await.is_err() {
                                return;
                            }
                        }
                        Ok(_) => {}
                        Err(error) => {
                            tracing::debug!(%error, "a connection to PostgreSQL ended");
                            return;
                        }
                    }
                }
            };
            tokio::pin!(drive);
            tokio::select! {
                () = &mut drive => {}
                cut = end => if cut.is_err() {
                    // What is under way may still be answered.
                    let _ = tokio::time::timeout(FAREWELL, drive).await;
                },
            }
        });
        Line { cut: Some(cut), is_unsynced, refuses_writes }
    }

    /// Lets go of the server at once, whatever it still owes.
    pub(crate) fn cut(&mut self) {
        if let Some(cut) = self.cut.take() {
            // It may have ended by itself.
            let _ = cut.send(());
        }
    }

    /// Whether a commit since the last time was not waited for by the standbys
    /// that it should be on.
    pub(crate) fn take_unsynced(&self) -> bool {
        self.is_unsynced.swap(false, Ordering::AcqRel)
    }

    /// Whether the server said with its last answer that it takes no writes. Only
    /// of a connection that listens, and not by a server before PostgreSQL 14.
    pub(crate) fn refuses_writes(&self) -> bool {
        self.refuses_writes.load(Ordering::Acquire)
    }
}

/// What the server tells of itself, unasked, when it changes.
fn says_read_only(link: &Link) -> bool {
    let is_on = |name| link.parameter(name) == Some("on");
    is_on("default_transaction_read_only") || is_on("in_hot_standby")
}

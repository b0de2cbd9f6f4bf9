//! Telling a worker what to do, from wherever the store can be reached.

use std::collections::HashMap;
use std::time::Duration;

use gristmill_core::{
    DocumentAnswer, DocumentChange, DocumentList, Expects, StoreError, Timestamp, WorkerId,
};
use gristmill_text::ControlPlane;

use crate::worker::{ORDERS, Orders};
use crate::{Error, Mill};

/// Orders of a worker that is not known any more are cleared away after this time.
const STALE: Duration = Duration::from_secs(3_600);
/// How often somebody else may be faster.
const TRIES: u32 = 10;
/// Most that are read.
const READ: usize = 1_000;

impl Mill {
    /// What is wanted of which worker.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn worker_orders(&self) -> Result<HashMap<WorkerId, Orders>, Error> {
        let list = DocumentList { kind: ORDERS.to_owned(), after: None, limit: READ };
        let said = self.store().documents(list).await?;
        let read = |name: &str| WorkerId::new(name).ok();
        Ok(said
            .iter()
            .filter_map(|one| Some((read(&one.name)?, Orders::read(&one.body))))
            .collect())
    }

    /// Changes what is wanted of a worker, which hears of it within eight seconds. It holds
    /// until it is changed or the worker ends.
    ///
    /// # Errors
    /// When no such worker has reported lately, or the store cannot answer.
    pub async fn order_worker(
        &self,
        worker: &WorkerId,
        change: impl Fn(&mut Orders),
    ) -> Result<Orders, Error> {
        let store = self.store();
        let known = store.workers().await?;
        if !known.iter().any(|view| view.report.id == *worker) {
            let why =
                format!("no worker {worker} has reported lately: 'gristmill workers' lists them");
            return Err(StoreError::invalid(why).into());
        }
        let listed = DocumentList { kind: ORDERS.to_owned(), after: None, limit: READ };
        let all = store.documents(listed).await?;
        let newest = all.iter().map(|one| one.changed_at).max().unwrap_or(Timestamp::EPOCH);
        for one in &all {
            let gone = !known.iter().any(|view| view.report.id.as_str() == one.name);
            if gone && newest.since(one.changed_at) > STALE {
                let expects = Expects::Version(one.version);
                store.save_document(DocumentChange::new(ORDERS, &one.name, expects, None)).await?;
            }
        }
        for _ in 0..TRIES {
            let standing = store.document(ORDERS, worker.as_str()).await?;
            let mut orders =
                standing.as_ref().map(|one| Orders::read(&one.body)).unwrap_or_default();
            change(&mut orders);
            let expects = Expects::from(standing.as_ref());
            let (name, body) = (worker.as_str(), Some(orders.write()));
            let wanted = DocumentChange::new(ORDERS, name, expects, body);
            if let DocumentAnswer::Saved(_) = store.save_document(wanted).await? {
                return Ok(orders);
            }
        }
        Err(StoreError::unavailable("others change the same orders again and again".to_owned())
            .into())
    }
}

//! Makes sure that source and target are two stores, and that one copy at a
//! time uses them.
//!
//! Two URLs can lead to one store (a socket and a port, a link to a file), so
//! the stores themselves are asked: a role taken in the source must not be
//! seen in the target.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{Leadership, Store, WorkerId};
use gristmill_text::ControlPlane;

use super::CopyError;

/// The role that a copy holds in both stores.
const ROLE: &str = "copy";
/// How long it holds without a renewal; a killed copy is forgotten after it.
/// Losing it early would do no harm: marks keep two copies from doubling.
const HOLD: Duration = Duration::from_secs(3);
/// How long a new copy waits for an older one to be forgotten.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(100);

/// A role that is taken once and for good: its holder's name is the store's.
const ORIGIN: &str = "store";
const FOR_GOOD: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A name for the store that no other has, and that it keeps.
pub(super) async fn origin(store: &dyn Store) -> Result<WorkerId, CopyError> {
    Ok(store.campaign(ORIGIN, &WorkerId::random()?, FOR_GOOD).await?.leader)
}

/// The role in both stores, given up at the end.
pub(super) struct Apart {
    from: Arc<dyn Store>,
    to: Arc<dyn Store>,
    reader: WorkerId,
    writer: WorkerId,
}

impl Apart {
    pub(super) async fn ensure(
        from: Arc<dyn Store>,
        to: Arc<dyn Store>,
    ) -> Result<Self, CopyError> {
        let apart = Apart { from, to, reader: WorkerId::random()?, writer: WorkerId::random()? };
        let source = await_role(apart.from.as_ref(), &apart.reader, None).await?;
        if !source.mine {
            return Err(CopyError::AnotherCopy("source"));
        }
        let target = await_role(apart.to.as_ref(), &apart.writer, Some(&apart.reader)).await;
        let refusal = match target {
            Ok(held) if held.mine => return Ok(apart),
            Ok(held) if held.leader == apart.reader => CopyError::SameStore,
            Ok(_) => CopyError::AnotherCopy("target"),
            Err(error) => error,
        };
        apart.end().await;
        Err(refusal)
    }

    /// Holds on to both roles.
    pub(super) async fn renew(&self) -> Result<(), CopyError> {
        for (store, who, what) in
            [(&self.from, &self.reader, "source"), (&self.to, &self.writer, "target")]
        {
            if !store.campaign(ROLE, who, HOLD).await?.mine {
                return Err(CopyError::AnotherCopy(what));
            }
        }
        Ok(())
    }

    /// Gives both roles up.
    pub(super) async fn end(&self) {
        // Whatever cannot be given up now is forgotten after its time.
        let _ = self.from.resign(ROLE, &self.reader).await;
        let _ = self.to.resign(ROLE, &self.writer).await;
    }
}

/// Asks for the role until it is free. Does not wait for `ours`.
async fn await_role(
    store: &dyn Store,
    who: &WorkerId,
    ours: Option<&WorkerId>,
) -> Result<Leadership, CopyError> {
    let since = Instant::now();
    loop {
        let held = store.campaign(ROLE, who, HOLD).await?;
        if held.mine || Some(&held.leader) == ours || since.elapsed() >= PATIENCE {
            return Ok(held);
        }
        tokio::time::sleep(LOOK).await;
    }
}

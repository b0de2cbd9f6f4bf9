//! Forgetting what was kept long enough: by one service at a time, now and then.

use std::sync::Arc;
use std::time::Duration;

use gristmill::StoreError;
use gristmill::port::WorkerId;
use gristmill_text::ControlPlane;

use crate::audit::{Audit, KEPT};
use crate::service::Service;

/// The role of who forgets.
const ROLE: &str = "retention";
/// How long it holds unless it is renewed, and how often there is something to forget.
const HOLD: Duration = Duration::from_secs(60);
const EVERY: Duration = Duration::from_secs(600);

/// Forgets until it is dropped.
pub(crate) async fn run(service: Arc<Service>, who: WorkerId) {
    loop {
        match look(&service, &who).await {
            Ok(0) => {}
            Ok(lines) => {
                tracing::info!(target: "gristmill::server", lines, "old lines of the audit log were forgotten");
            }
            Err(error) => {
                tracing::debug!(target: "gristmill::server", error = %error.whole(), "nothing was forgotten");
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

async fn look(service: &Service, who: &WorkerId) -> Result<u64, StoreError> {
    if !service.store.campaign(ROLE, who, HOLD).await?.mine {
        return Ok(0);
    }
    Audit::of(&service.mill).forget(service.kept_audit.unwrap_or(KEPT)).await
}

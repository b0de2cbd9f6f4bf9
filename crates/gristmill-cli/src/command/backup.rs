//! `backup`: a copy of the store while it is in use.

use std::path::PathBuf;

use gristmill::StoreUrl;
use serde_json::json;

use super::Session;
use crate::failure::{Exit, Failure};
use crate::progress;
use crate::store::Missing;

/// Copy the store there.
#[derive(Debug)]
pub(crate) struct Backup {
    pub(crate) file: PathBuf,
}

impl Backup {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let shown = self.file.display();
        let sqlite = mill.sqlite().ok_or_else(|| {
            // Each has a way of its own.
            let instead = match session.url() {
                StoreUrl::Files(_) => {
                    "copy its folder while nothing writes to it, or its tasks with 'gristmill copy'"
                }
                StoreUrl::Postgres(_) => "back the database up, as with pg_dump",
                _ => "back its store up where that is",
            };
            let said = format!("'gristmill backup' is for SQLite stores: {instead}");
            Failure::new(Exit::Wrong, "not_supported", said)
        })?;
        let bar = progress::looking("copying");
        sqlite.backup(&self.file).await?;
        bar.finish_and_clear();
        let bytes = std::fs::metadata(&self.file)
            .map_err(|error| Failure::io(&shown.to_string(), &error))?
            .len();
        mill.close().await?;
        session.output.either(
            &json!({ "backup": self.file.to_string_lossy(), "bytes": bytes }),
            format_args!("copied {} to {shown} ({bytes} bytes)", session.url()),
        )
    }
}

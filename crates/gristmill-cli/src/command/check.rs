//! `check`: is the store sound, and do its parts agree?

use serde_json::json;

use super::Session;
use crate::failure::{Exit, Failure};
use crate::output::count;
use crate::progress;
use crate::store::Missing;

/// Look the whole store over.
#[derive(Debug)]
pub(crate) struct Check;

impl Check {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let bar = progress::looking("looking at every row");
        let findings: Vec<String> = if let Some(sqlite) = mill.sqlite() {
            sqlite.check().await?.iter().map(ToString::to_string).collect()
        } else if let Some(files) = mill.files() {
            files.check().await?.iter().map(ToString::to_string).collect()
        } else if let Some(postgres) = mill.postgres() {
            postgres.check().await?.iter().map(ToString::to_string).collect()
        } else {
            let needed = "a check needs a store that outlives its process";
            return Err(Failure::new(Exit::Wrong, "not_supported", needed));
        };
        bar.finish_and_clear();
        mill.close().await?;
        let sound = findings.is_empty();
        if session.output.json {
            session.output.value(&json!({ "sound": sound, "findings": findings }))?;
        } else if sound {
            session.output.line(format_args!("{} is sound", session.url()))?;
        } else {
            for finding in &findings {
                session.output.line(finding)?;
            }
        }
        if sound {
            return Ok(());
        }
        let found = count(findings.len() as u64, "finding");
        Err(Failure::new(
            Exit::Unusable,
            "damaged",
            format!(
                "the store is not sound ({found}): make a copy of it, then look at each, or restore a \
                 backup"
            ),
        ))
    }
}

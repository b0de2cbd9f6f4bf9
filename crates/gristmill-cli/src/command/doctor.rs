//! `doctor`: what is not as it should be, in words, with what to do.

use serde_json::json;

use super::Session;
use crate::failure::{Exit, Failure};
use crate::output::count;
use crate::progress;
use crate::store::Missing;

/// Look at everything.
#[derive(Debug)]
pub(crate) struct Doctor {
    /// Notes count as well.
    pub(crate) strict: bool,
}

impl Doctor {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let bar = progress::looking("looking at everything");
        let found = mill.doctor().await?;
        bar.finish_and_clear();
        mill.close().await?;
        let grave = found.iter().filter(|diagnosis| diagnosis.grave).count() as u64;
        if session.output.json {
            let findings: Vec<_> = found
                .iter()
                .map(|d| json!({ "code": d.code, "grave": d.grave, "found": d.found, "remedy": d.remedy }))
                .collect();
            session.output.value(&json!({ "sound": grave == 0, "findings": findings }))?;
        } else if found.is_empty() {
            session.output.line(format_args!("{} is sound: nothing was found", session.url()))?;
        } else {
            for diagnosis in &found {
                let word = if diagnosis.grave { "grave" } else { "note" };
                session.output.line(format_args!("{word}: {}", diagnosis.found))?;
                session.output.line(format_args!("       {}", diagnosis.remedy))?;
            }
        }
        let message = match (grave, found.len() as u64) {
            (0, notes) if self.strict && notes > 0 => count(notes, "thing"),
            (0, _) => return Ok(()),
            (grave, _) => count(grave, "grave thing"),
        };
        let message = format!("{message} found: see above what to do");
        Err(Failure::new(Exit::Unusable, "not_sound", message))
    }
}

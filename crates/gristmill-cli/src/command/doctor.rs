//! `doctor`: what is not as it should be, in words, with what to do.

use serde_json::json;

use super::Session;
use crate::failure::{Exit, Failure};
use crate::output::count;
use crate::store::Missing;

/// Look at everything.
#[derive(Debug)]
pub(crate) struct Doctor;

impl Doctor {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let found = mill.doctor().await?;
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
        if grave == 0 {
            return Ok(());
        }
        let message = format!("{} found: see above what to do", count(grave, "grave thing"));
        Err(Failure::new(Exit::Unusable, "not_sound", message))
    }
}

//! `config check`: every mistake in the configuration, and handlers that are not there.

use std::path::PathBuf;

use serde_json::json;

use super::Session;
use crate::config;
use crate::failure::{Exit, Failure};
use crate::output::count;
use crate::program;

/// Check this file.
#[derive(Debug)]
pub(crate) struct ConfigCheck {
    pub(crate) file: PathBuf,
}

impl ConfigCheck {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let config = config::read(&self.file)?;
        let shown = self.file.display().to_string();
        let missing: Vec<String> = config
            .queues
            .iter()
            .filter_map(|queue| {
                let why = program::missing(queue)?;
                let line = config.lines.line(&format!("queues.{}.exec", queue.name));
                let line = line.map_or_else(String::new, |line| format!(":{line}"));
                Some(format!("{shown}{line}: {why}"))
            })
            .collect();
        if !missing.is_empty() {
            return Err(Failure::new(Exit::Usage, "config", missing.join("\n")));
        }
        let (queues, seed) = (config.queues.len() as u64, config.seed.len() as u64);
        let schedules = config.schedules.len() as u64;
        session.output.either(
            &json!({ "config": shown, "queues": queues, "schedules": schedules, "seed": seed }),
            format_args!(
                "{shown} is fine: {}, {}, {} to seed",
                count(queues, "queue"),
                count(schedules, "schedule"),
                count(seed, "task")
            ),
        )
    }
}

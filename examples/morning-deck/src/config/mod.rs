//! The configuration: every property with its default, over it a file, over
//! that the environment. It is checked whole, and all mistakes are told at once.

mod file;
mod property;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use property::{PROPERTIES, Property};

use crate::smtp::{Encryption, Login, Server};
use property::Values;

/// How one of the three queues is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serving {
    /// Whether it is served at all.
    pub enabled: bool,
    /// Most tasks that wait.
    pub queue_capacity: u64,
    /// How many run side by side.
    pub worker_count: usize,
    /// How often its scheduler looks for what is due.
    pub interval: Duration,
    /// Most rows that one look puts.
    pub batch_size: usize,
}

/// Where the queues live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueuePlace {
    /// In the application's own file: a row and its task change together.
    Database,
    /// In memory: gone with the process, and brought back by recovery.
    Memory,
}

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Fetching sources.
    pub fetching: Serving,
    /// Enriching news items.
    pub processing: Serving,
    /// Executing briefings.
    pub briefings: Serving,
    /// How often recovery looks for stuck rows of each kind.
    pub recovery_interval: Duration,
    /// How long a row of any kind must be stuck.
    pub stuck_threshold: Duration,
    /// How long running work may go on at the stop.
    pub stop_within: Duration,
    /// The application's file.
    pub database: PathBuf,
    /// Where the queues live.
    pub queue: QueuePlace,
    /// Where mails go out, if they do.
    pub mail: Option<Server>,
    /// Who they are from.
    pub mail_from: String,
    /// The search server, if there is one.
    pub search: Option<String>,
    /// The search server's key, if it asks for one.
    pub search_key: Option<String>,
    /// Where the status page is, if anywhere.
    pub status: Option<SocketAddr>,
    /// The authorities whose certificates are believed, instead of the public ones.
    pub authorities: Option<PathBuf>,
}

/// What is wrong with a configuration: all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes(Vec<String>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Mistakes {}

impl Config {
    /// Reads the configuration: a file, if there is one, and the environment
    /// over it. `application.jobs.processing.interval` is
    /// `APPLICATION_JOBS_PROCESSING_INTERVAL` there.
    ///
    /// # Errors
    /// When the file cannot be read, or with all that is wrong in it.
    pub fn load(
        path: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Mistakes> {
        let text = path.map(|path| {
            let name = path.display().to_string();
            std::fs::read_to_string(path)
                .map(|text| (name.clone(), text))
                .map_err(|error| Mistakes(vec![format!("{name}: {error}")]))
        });
        let file = text.transpose()?;
        let file = file.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));
        Self::read(file, environment)
    }

    /// As [`Config::load`], from a file's name and text.
    ///
    /// # Errors
    /// With all that is wrong.
    pub fn read(
        file: Option<(&str, &str)>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Mistakes> {
        let mut values = Values::default();
        if let Some((name, text)) = file {
            for setting in file::settings(name, text).map_err(|error| Mistakes(vec![error]))? {
                values.set(&setting.name, setting.value, setting.place);
            }
        }
        for (name, value) in environment {
            values.set_from_environment(&name, value);
        }
        let mail = mail_server(&mut values);
        let config = Config {
            fetching: Serving {
                enabled: values.boolean("application.jobs.feed-ingestion.enabled"),
                queue_capacity: values.number("application.jobs.feed-ingestion.queue-capacity"),
                worker_count: values.count("application.jobs.feed-ingestion.worker-count"),
                interval: values.millis("application.jobs.feed-scheduling.interval"),
                batch_size: values.count("application.jobs.feed-ingestion.batch-size"),
            },
            processing: Serving {
                enabled: values.boolean("application.jobs.processing.enabled"),
                queue_capacity: values.number("application.jobs.processing.queue-capacity"),
                worker_count: values.count("application.jobs.processing.worker-count"),
                interval: values.millis("application.jobs.processing.interval"),
                batch_size: values.count("application.jobs.processing.batch-size"),
            },
            briefings: Serving {
                enabled: values.boolean("application.jobs.briefing-execution.enabled"),
                queue_capacity: values.number("application.jobs.briefing-execution.queue-capacity"),
                worker_count: values.count("application.jobs.briefing-execution.worker-count"),
                interval: values.millis("application.jobs.briefing-execution.interval"),
                // Only the queue's room limits these.
                batch_size: usize::MAX,
            },
            recovery_interval: values.millis("application.jobs.feed-recovery.interval"),
            stuck_threshold: Duration::from_secs(
                60 * values.number("application.jobs.feed-ingestion.stuck-threshold-minutes"),
            ),
            stop_within: values.millis("application.shutdown-timeout"),
            database: PathBuf::from(values.text("application.database")),
            queue: match values.text("application.queue").as_str() {
                "memory" => QueuePlace::Memory,
                _ => QueuePlace::Database,
            },
            mail: Some(mail).filter(|_| values.boolean("application.mail.enabled")),
            mail_from: values.text("application.mail.from"),
            search: values
                .boolean("application.search.enabled")
                .then(|| values.text("application.search.url")),
            search_key: values.said("application.search.key"),
            // Checked as it was said.
            status: values.said("application.status.listen").and_then(|said| said.parse().ok()),
            authorities: values.said("application.tls.authorities").map(PathBuf::from),
        };
        let mistakes = values.mistakes();
        if mistakes.is_empty() { Ok(config) } else { Err(Mistakes(mistakes)) }
    }
}

/// Names of this machine: what is said to them no other one hears.
const HERE: &[&str] = &["localhost", "127.0.0.1", "::1"];

fn mail_server(values: &mut Values) -> Server {
    let server = Server {
        host: values.text("application.mail.host"),
        port: values.port(),
        encryption: match values.text("application.mail.encryption").as_str() {
            "starttls" => Encryption::StartTls,
            "tls" => Encryption::Tls,
            _ => Encryption::None,
        },
        login: values.said("application.mail.user").map(|user| {
            let password = values.text("application.mail.password");
            Login { user, password }
        }),
    };
    let has_password = values.said("application.mail.password").is_some();
    if server.login.is_some() != has_password {
        values.wrong("application.mail.user and application.mail.password need each other");
    } else if has_password
        && server.encryption == Encryption::None
        && !HERE.contains(&server.host.as_str())
    {
        values.wrong(
            "application.mail.password would go over the network in the clear: set \
             application.mail.encryption to starttls or tls",
        );
    }
    server
}

#[cfg(test)]
mod tests;

//! The properties by name, with their defaults and what they accept.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::smtp;
use crate::url;

/// A property.
#[derive(Debug, Clone, Copy)]
pub struct Property {
    /// Its name, as a file has it.
    pub name: &'static str,
    /// Its value unless said.
    pub default: &'static str,
    accepts: Accepts,
}

#[derive(Debug, Clone, Copy)]
enum Accepts {
    Boolean,
    Number(u64, u64),
    OneOf(&'static [&'static str]),
    Text,
    Address,
    Url,
    MayBeEmpty,
    Listen,
}

const fn property(name: &'static str, default: &'static str, accepts: Accepts) -> Property {
    Property { name, default, accepts }
}

const CAPACITY: Accepts = Accepts::Number(1, 1_000_000);
const WORKERS: Accepts = Accepts::Number(1, 256);
const BATCH: Accepts = Accepts::Number(1, 10_000);
/// From a second, the shortest interval of a schedule, to a day.
const INTERVAL: Accepts = Accepts::Number(1_000, 86_400_000);
const PLACES: Accepts = Accepts::OneOf(&["database", "memory"]);

const ENCRYPTIONS: Accepts = Accepts::OneOf(&["none", "starttls", "tls"]);

/// All of them. Intervals are in milliseconds.
pub const PROPERTIES: &[Property] = &[
    property("application.jobs.feed-ingestion.enabled", "true", Accepts::Boolean),
    property("application.jobs.feed-ingestion.queue-capacity", "1000", CAPACITY),
    property("application.jobs.feed-ingestion.worker-count", "4", WORKERS),
    property("application.jobs.feed-ingestion.batch-size", "100", BATCH),
    property(
        "application.jobs.feed-ingestion.stuck-threshold-minutes",
        "10",
        Accepts::Number(1, 10_080),
    ),
    property("application.jobs.feed-scheduling.interval", "60000", INTERVAL),
    property("application.jobs.feed-recovery.interval", "300000", INTERVAL),
    property("application.jobs.processing.enabled", "true", Accepts::Boolean),
    property("application.jobs.processing.queue-capacity", "1000", CAPACITY),
    property("application.jobs.processing.worker-count", "4", WORKERS),
    property("application.jobs.processing.batch-size", "50", BATCH),
    property("application.jobs.processing.interval", "60000", INTERVAL),
    property("application.jobs.briefing-execution.enabled", "true", Accepts::Boolean),
    property("application.jobs.briefing-execution.queue-capacity", "100", CAPACITY),
    property("application.jobs.briefing-execution.worker-count", "2", WORKERS),
    property("application.jobs.briefing-execution.interval", "60000", INTERVAL),
    property("application.shutdown-timeout", "30000", Accepts::Number(0, 600_000)),
    property("application.database", "morning-deck.db", Accepts::Text),
    property("application.queue", "database", PLACES),
    property("application.mail.enabled", "true", Accepts::Boolean),
    property("application.mail.host", "localhost", Accepts::Text),
    property("application.mail.port", "25", Accepts::Number(1, 65_535)),
    property("application.mail.encryption", "none", ENCRYPTIONS),
    property("application.mail.user", "", Accepts::MayBeEmpty),
    property("application.mail.password", "", Accepts::MayBeEmpty),
    property("application.mail.from", "morning-deck@example.com", Accepts::Address),
    property("application.search.enabled", "false", Accepts::Boolean),
    property("application.search.key", "", Accepts::MayBeEmpty),
    property("application.status.listen", "", Accepts::Listen),
    property("application.tls.authorities", "", Accepts::MayBeEmpty),
    property("application.search.url", "http://localhost:7700", Accepts::Url),
];

/// Variables under these names are ours: an unknown one is a slip of the pen.
const OURS: &[&str] = &[
    "APPLICATION_JOBS_",
    "APPLICATION_MAIL_",
    "APPLICATION_SEARCH_",
    "APPLICATION_STATUS_",
    "APPLICATION_TLS_",
];

impl Property {
    /// Its name in the environment.
    pub fn variable(&self) -> String {
        self.name.to_uppercase().replace(['.', '-'], "_")
    }

    fn check(&self, value: &str) -> Result<(), String> {
        match self.accepts {
            Accepts::Boolean => match value {
                "true" | "false" => Ok(()),
                _ => Err("it must be true or false".to_owned()),
            },
            Accepts::Number(least, most) => match value.parse::<u64>() {
                Ok(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(format!("it must be a number from {least} to {most}")),
            },
            Accepts::OneOf(words) if words.contains(&value) => Ok(()),
            Accepts::OneOf(words) => Err(format!("it must be {}", words.join(" or "))),
            Accepts::Text if value.is_empty() => Err("it must not be empty".to_owned()),
            Accepts::Text => Ok(()),
            Accepts::Address => smtp::address(value).map(drop).map_err(|error| error.to_string()),
            Accepts::Url => url::check(value),
            Accepts::MayBeEmpty => Ok(()),
            Accepts::Listen if value.is_empty() => Ok(()),
            Accepts::Listen => match value.parse::<SocketAddr>() {
                Ok(_) => Ok(()),
                Err(_) => Err("it must be an address and a port, as 127.0.0.1:8080".to_owned()),
            },
        }
    }
}

/// The values in force, and what was wrong on the way to them.
#[derive(Debug, Default)]
pub(super) struct Values {
    said: BTreeMap<&'static str, String>,
    mistakes: Vec<String>,
}

impl Values {
    /// Says a property. A value that cannot be is not taken.
    pub(super) fn set(&mut self, name: &str, value: String, place: String) {
        let Some(property) = PROPERTIES.iter().find(|property| property.name == name) else {
            self.mistakes.push(format!("{place}: there is no property '{name}'{}", near(name)));
            return;
        };
        match property.check(&value) {
            Ok(()) => {
                self.said.insert(property.name, value);
            }
            Err(why) => self.mistakes.push(format!("{place}: {name} is '{value}': {why}")),
        }
    }

    pub(super) fn set_from_environment(&mut self, variable: &str, value: String) {
        let known = PROPERTIES.iter().find(|property| property.variable() == variable);
        match known {
            Some(property) => self.set(property.name, value, variable.to_owned()),
            None if OURS.iter().any(|ours| variable.starts_with(ours)) => {
                self.mistakes.push(format!("{variable}: there is no such property"));
            }
            None => {}
        }
    }

    /// What is wrong with several of them together.
    pub(super) fn wrong(&mut self, why: &str) {
        self.mistakes.push(why.to_owned());
    }

    pub(super) fn mistakes(self) -> Vec<String> {
        self.mistakes
    }

    pub(super) fn text(&self, name: &str) -> String {
        let default = PROPERTIES.iter().find(|property| property.name == name);
        let default = || default.map_or_else(String::new, |property| property.default.to_owned());
        self.said.get(name).cloned().unwrap_or_else(default)
    }

    /// None where it is empty.
    pub(super) fn said(&self, name: &str) -> Option<String> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    pub(super) fn boolean(&self, name: &str) -> bool {
        self.text(name) == "true"
    }

    pub(super) fn number(&self, name: &str) -> u64 {
        // Every value was checked as it was said; defaults are checked by a test.
        self.text(name).parse().unwrap_or_default()
    }

    pub(super) fn count(&self, name: &str) -> usize {
        usize::try_from(self.number(name)).unwrap_or(usize::MAX)
    }

    pub(super) fn millis(&self, name: &str) -> Duration {
        Duration::from_millis(self.number(name))
    }

    pub(super) fn port(&self) -> u16 {
        u16::try_from(self.number("application.mail.port")).unwrap_or_default()
    }
}

/// A property that may have been meant: one that ends alike.
fn near(name: &str) -> String {
    let last = |name: &'_ str| name.rsplit('.').next().unwrap_or("").to_owned();
    let meant = PROPERTIES.iter().find(|property| last(property.name) == last(name));
    meant.map_or_else(String::new, |property| format!("; did you mean '{}'?", property.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_accepted() {
        for property in PROPERTIES {
            assert_eq!(property.check(property.default), Ok(()), "{}", property.name);
        }
    }
}

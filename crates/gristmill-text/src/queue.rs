//! A queue whose declarations and override are columns of JSON text.

use gristmill_core::{Origin, Override, Queue, Result, Settings, SettingsPatch, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{corrupt, parse, queue_name, settings, text};

/// A queue as its row has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredQueue {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// The text of its declarations.
    pub declared: String,
    /// The text of its override.
    pub overridden: Option<String>,
    /// It hands out nothing.
    pub paused: bool,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// Its contract's text.
    pub contract: Option<String>,
    /// When it was first declared.
    pub created_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct DeclaredText {
    origin: String,
    settings: Value,
}

#[derive(Serialize, Deserialize)]
struct OverrideText {
    settings: Value,
    by: String,
    at: i64,
}

impl StoredQueue {
    /// The queue that was stored, with the settings in force.
    ///
    /// # Errors
    ///
    /// Corrupt, when one of its texts cannot be read.
    pub fn into_queue(self) -> Result<Queue> {
        let declared: Vec<DeclaredText> = parse("a queue's declarations", &self.declared)?;
        let declared: Vec<(Origin, SettingsPatch)> = declared
            .into_iter()
            .map(|text| Ok((origin(&text.origin)?, settings::read(&text.settings)?)))
            .collect::<Result<_>>()?;
        let overridden = match &self.overridden {
            None => None,
            Some(text) => {
                let text: OverrideText = parse("a queue's override", text)?;
                Some(Override {
                    settings: settings::read(&text.settings)?,
                    by: text.by,
                    at: Timestamp::from_micros(text.at),
                })
            }
        };
        let settings = Queue::effective(&Settings::default(), &declared, overridden.as_ref());
        Ok(Queue {
            name: queue_name(&self.name)?,
            number: self.number,
            declared,
            overridden,
            settings,
            paused: self.paused,
            paused_by: self.paused_by,
            contract: self.contract,
            created_at: self.created_at,
        })
    }
}

/// A queue's declarations and override, as they are stored.
///
/// # Errors
///
/// Invalid, when they cannot be said in JSON.
pub fn queue_texts(queue: &Queue) -> Result<(String, Option<String>)> {
    let declared: Vec<DeclaredText> = queue
        .declared
        .iter()
        .map(|(origin, patch)| DeclaredText {
            origin: origin.as_str().to_owned(),
            settings: settings::write(patch),
        })
        .collect();
    let overridden = queue.overridden.as_ref().map(|change| OverrideText {
        settings: settings::write(&change.settings),
        by: change.by.clone(),
        at: change.at.as_micros(),
    });
    Ok((text(&declared)?, overridden.as_ref().map(text).transpose()?))
}

/// Where a declaration came from, by its stored word.
///
/// # Errors
///
/// Corrupt, when the word is unknown.
pub fn origin(word: &str) -> Result<Origin> {
    Origin::ALL
        .into_iter()
        .find(|origin| origin.as_str() == word)
        .ok_or_else(|| corrupt("a queue's origin", word))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gristmill_core::QueueName;

    use super::*;

    #[test]
    fn a_queue_is_stored_in_these_words() -> Result<()> {
        let lease = |seconds| SettingsPatch {
            lease: Some(Duration::from_secs(seconds)),
            ..SettingsPatch::default()
        };
        let stored = StoredQueue {
            number: 10_000,
            name: "mails".to_owned(),
            declared: r#"[{"origin":"code","settings":{"lease":1000000}}]"#.to_owned(),
            overridden: Some(r#"{"settings":{"lease":2000000},"by":"ada","at":7}"#.to_owned()),
            paused: true,
            paused_by: Some("ada".to_owned()),
            contract: None,
            created_at: Timestamp::from_micros(5),
        };
        let queue = stored.clone().into_queue()?;
        assert_eq!(queue.name, QueueName::new("mails").map_err(|e| corrupt("the name", e))?);
        assert_eq!(queue.declared, [(Origin::Code, lease(1))]);
        assert_eq!(queue.settings.lease, Duration::from_secs(2));
        assert_eq!(queue_texts(&queue)?, (stored.declared, stored.overridden));
        Ok(())
    }

    #[test]
    fn an_unknown_origin_is_named() {
        assert_eq!(origin("hearsay"), Err(corrupt("a queue's origin", "hearsay")));
    }
}

//! A queue's settings as JSON: only what was said is stored, and `null` means
//! that *none* was said.

use std::time::Duration;

use gristmill_core::{
    Backoff, Binding, Claims, Durability, Fair, OnDuplicate, Per, Rate, Result, Settings,
    SettingsPatch, Unique,
};
use serde_json::{Map, Value, json};

use crate::{corrupt, micros};

/// A setting's value in JSON.
trait Setting: Sized {
    fn write(&self) -> Value;
    fn read(value: &Value) -> Option<Self>;
}

impl Setting for Duration {
    fn write(&self) -> Value {
        json!(micros(*self))
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_u64().map(Duration::from_micros)
    }
}

impl Setting for u32 {
    fn write(&self) -> Value {
        json!(self)
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_u64().and_then(|n| u32::try_from(n).ok())
    }
}

impl Setting for u64 {
    fn write(&self) -> Value {
        json!(self)
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_u64()
    }
}

impl Setting for bool {
    fn write(&self) -> Value {
        json!(self)
    }

    fn read(value: &Value) -> Option<Self> {
        value.as_bool()
    }
}

impl<T: Setting> Setting for Option<T> {
    fn write(&self) -> Value {
        self.as_ref().map_or(Value::Null, Setting::write)
    }

    fn read(value: &Value) -> Option<Self> {
        if value.is_null() { Some(None) } else { T::read(value).map(Some) }
    }
}

impl Setting for Backoff {
    fn write(&self) -> Value {
        json!({
            "base": self.base.write(),
            "cap": self.cap.write(),
            "jitter": self.jitter,
        })
    }

    fn read(value: &Value) -> Option<Self> {
        Some(Backoff {
            base: Duration::read(value.get("base")?)?,
            cap: Duration::read(value.get("cap")?)?,
            jitter: value.get("jitter")?.as_bool()?,
        })
    }
}

impl Setting for Rate {
    fn write(&self) -> Value {
        json!({ "tasks": self.tasks, "per": self.per.write() })
    }

    fn read(value: &Value) -> Option<Self> {
        let (tasks, per) = (u32::read(value.get("tasks")?)?, Duration::read(value.get("per")?)?);
        Some(Rate::new(tasks, per))
    }
}

impl Setting for Binding {
    fn write(&self) -> Value {
        json!({ "table": self.table, "column": self.column })
    }

    fn read(value: &Value) -> Option<Self> {
        Some(Binding {
            table: value.get("table")?.as_str()?.to_owned(),
            column: value.get("column")?.as_str()?.to_owned(),
        })
    }
}

macro_rules! by_word {
    ($($type:ty),+) => {$(
        impl Setting for $type {
            fn write(&self) -> Value {
                json!(self.as_str())
            }

            fn read(value: &Value) -> Option<Self> {
                value.as_str()?.parse().ok()
            }
        }
    )+};
}
by_word!(Unique, OnDuplicate, Durability, Claims, Per, Fair);

/// Makes both directions from the table of settings.
macro_rules! fields {
    ($( $(#[$doc:meta])* $name:ident ( $($word:literal),+ ) : $type:ty = $default:expr ; )+) => {
        /// What the patch says.
        #[must_use]
        pub fn write(patch: &SettingsPatch) -> Value {
            let SettingsPatch { $($name),+ } = patch;
            let mut said = Map::new();
            $( if let Some(value) = $name {
                said.insert(stringify!($name).to_owned(), value.write());
            } )+
            Value::Object(said)
        }

        /// The patch that says every one of these settings.
        #[must_use]
        pub fn whole(settings: &Settings) -> SettingsPatch {
            SettingsPatch { $( $name: Some(settings.$name.clone()) ),+ }
        }

        /// The patch that says so.
        ///
        /// # Errors
        ///
        /// Corrupt, when a setting's value is none of its kind.
        pub fn read(stored: &Value) -> Result<SettingsPatch> {
            let mut patch = SettingsPatch::default();
            $( if let Some(value) = stored.get(stringify!($name)) {
                let read = Setting::read(value)
                    .ok_or_else(|| corrupt(concat!("the setting ", stringify!($name)), value))?;
                patch.$name = Some(read);
            } )+
            Ok(patch)
        }
    };
}
gristmill_core::with_settings!(fields);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_survives_the_round_trip() {
        let patch = SettingsPatch {
            lease: Some(Duration::from_millis(1500)),
            max_attempts: Some(None),
            backoff: Some(Backoff::default()),
            keep_done: Some(Some(Duration::from_secs(5))),
            unique: Some(Unique::Active),
            durability: Some(Durability::Relaxed),
            capacity: Some(Some(7)),
            bind: Some(Some(Binding { table: "it em".to_owned(), column: "i\"d".to_owned() })),
            ..SettingsPatch::default()
        };
        assert_eq!(read(&write(&patch)), Ok(patch));
        assert_eq!(read(&write(&SettingsPatch::default())), Ok(SettingsPatch::default()));
    }

    /// What stands in people's files and tables. A line may be added to it, and
    /// none may change.
    const WORDS: &str = concat!(
        r#"{"backoff":{"base":2000000,"cap":3600000000,"jitter":true},"batch_size":100,"#,
        r#""bind":{"column":"id","table":"item"},"burst":6,"capacity":7,"claims":"durable","#,
        r#""concurrency":5,"concurrency_per":"group","count":true,"#,
        r#""drain_within":8000000,"durability":"relaxed","fair":"group","id_window":3000000,"#,
        r#""keep_done":5000000,"keep_failed":null,"keep_result":4000000,"lease":1500000,"#,
        r#""max_attempts":null,"#,
        r#""max_wait":9000000,"on_duplicate":"postpone","postpone_max":6000000,"#,
        r#""processors_max":4,"processors_min":1,"processors_weight":2,"#,
        r#""rate":{"per":60000000,"tasks":100},"rate_per":"group","slots":3,"#,
        r#""timeout":2000000,"unique":"active","unique_for":7000000}"#,
    );

    #[test]
    fn every_setting_is_stored_in_these_words() {
        let said = |seconds| Some(Duration::from_secs(seconds));
        let patch = SettingsPatch {
            lease: Some(Duration::from_millis(1500)),
            timeout: said(2),
            max_attempts: Some(None),
            backoff: Some(Backoff::default()),
            id_window: said(3),
            keep_done: Some(said(5)),
            keep_result: Some(said(4)),
            keep_failed: Some(None),
            durability: Some(Durability::Relaxed),
            claims: Some(Claims::Durable),
            unique: Some(Unique::Active),
            on_duplicate: Some(OnDuplicate::Postpone),
            postpone_max: Some(said(6)),
            unique_for: Some(said(7)),
            capacity: Some(Some(7)),
            batch_size: Some(100),
            count: Some(true),
            slots: Some(Some(3)),
            concurrency: Some(Some(5)),
            concurrency_per: Some(Per::Group),
            rate: Some(Some(Rate::new(100, Duration::from_secs(60)))),
            burst: Some(Some(6)),
            rate_per: Some(Per::Group),
            fair: Some(Fair::Group),
            processors_min: Some(1),
            processors_max: Some(Some(4)),
            processors_weight: Some(2),
            drain_within: Some(said(8)),
            max_wait: Some(said(9)),
            bind: Some(Some(Binding { table: "item".to_owned(), column: "id".to_owned() })),
        };
        assert_eq!(write(&patch).to_string(), WORDS);
        assert_eq!(crate::parse("the words", WORDS).and_then(|stored| read(&stored)), Ok(patch));
    }

    #[test]
    fn a_damaged_setting_is_named() {
        let error = read(&json!({ "lease": "soon" })).map_err(|e| e.to_string());
        assert!(error.is_err_and(|e| e.contains("lease")));
    }
}

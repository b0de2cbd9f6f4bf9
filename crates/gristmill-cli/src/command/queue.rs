//! `queue add`, `set`, `reset` and `list`.

use comfy_table::Cell;
use gristmill::port::{Declaration, Declared, Origin, Queue};
use gristmill::{QueueName, SettingsPatch};
use serde_json::{Value, json};

use super::{Session, who};
use crate::args::{QueueAddArgs, QueueResetArgs, QueueSetArgs};
use crate::failure::Failure;
use crate::output::table;
use crate::store::Missing;
use gristmill_contract::settings;

/// Declare a queue.
#[derive(Debug)]
pub(crate) struct Add {
    name: QueueName,
    settings: SettingsPatch,
}

impl Add {
    pub(crate) fn meant(args: QueueAddArgs) -> Result<Self, Failure> {
        let settings = settings::from_words(&args.settings).map_err(Failure::usage)?;
        settings::check(&settings).map_err(Failure::usage)?;
        Ok(Add { name: QueueName::new(&args.name)?, settings })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Create).await?;
        let declaration = Declaration {
            name: self.name,
            number: None,
            settings: self.settings,
            origin: Origin::Code,
        };
        let declared = mill.store().declare_queue(declaration).await?;
        mill.close().await?;
        tell(session, &declared, if declared.created { "added" } else { "stood already" })
    }
}

/// An operator's change, or its end.
#[derive(Debug)]
pub(crate) struct Change {
    name: QueueName,
    /// Nothing: take the change back.
    settings: Option<SettingsPatch>,
    by: String,
}

impl Change {
    pub(crate) fn set(args: QueueSetArgs) -> Result<Self, Failure> {
        let settings = settings::from_words(&args.settings).map_err(Failure::usage)?;
        let name = QueueName::new(&args.name)?;
        Ok(Change { name, settings: Some(settings), by: who(args.by)? })
    }

    pub(crate) fn reset(args: QueueResetArgs) -> Result<Self, Failure> {
        Ok(Change { name: QueueName::new(&args.name)?, settings: None, by: who(args.by)? })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        mill.inspect().queue(self.name.as_str()).await?;
        let store = mill.store();
        let (declared, what) = match self.settings {
            Some(settings) => {
                (store.override_queue(&self.name, settings, &self.by).await?, "changed")
            }
            None => (store.reset_queue(&self.name, &self.by).await?, "reset"),
        };
        mill.close().await?;
        tell(session, &declared, what)
    }
}

fn tell(session: &Session, declared: &Declared, what: &str) -> Result<(), Failure> {
    if session.output.json {
        let mut queue = as_json(&declared.queue);
        if let Value::Object(fields) = &mut queue {
            fields.insert("created".to_owned(), declared.created.into());
        }
        return session.output.value(&queue);
    }
    let name = &declared.queue.name;
    session.output.line(format_args!("queue {name} {what}"))?;
    for change in &declared.changes {
        session.output.line(format_args!("  {}", change_text(change)))?;
    }
    Ok(())
}

/// A changed setting in words: `max_attempts: 5 -> 3`.
pub(crate) fn change_text((name, before, after): &(&'static str, String, String)) -> String {
    // The model says what it holds; nobody should have to know Rust to read it.
    let plain = |value: &str| match value.strip_prefix("Some(").and_then(|v| v.strip_suffix(')')) {
        Some(inner) => inner.to_owned(),
        None if value == "None" => "none".to_owned(),
        None => value.to_owned(),
    };
    format!("{name}: {} -> {}", plain(before), plain(after))
}

/// List the queues.
#[derive(Debug)]
pub(crate) struct List;

impl List {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let queues = mill.inspect().queues().await?;
        mill.close().await?;
        if session.output.json {
            let all: Vec<Value> = queues.iter().map(as_json).collect();
            return session.output.value(&all);
        }
        if queues.is_empty() {
            return session
                .output
                .line("no queues yet: declare one with 'gristmill queue add NAME'");
        }
        let mut table = table::new(&[">number", "queue", "declared by", "changed by", "settings"]);
        for queue in &queues {
            let origins: Vec<&str> = queue.declared.iter().map(|(o, _)| o.as_str()).collect();
            let by = queue.overridden.as_ref().map_or("-", |change| change.by.as_str());
            table.add_row(vec![
                Cell::new(queue.number),
                Cell::new(&queue.name),
                Cell::new(origins.join(", ")),
                Cell::new(by),
                Cell::new(settings_text(queue)),
            ]);
        }
        session.output.line(table::text(&table))
    }
}

fn settings_text(queue: &Queue) -> String {
    let said: Vec<String> = settings::differing(&queue.settings)
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if said.is_empty() { "defaults".to_owned() } else { said.join(" ") }
}

fn as_json(queue: &Queue) -> Value {
    let settings: serde_json::Map<String, Value> = settings::differing(&queue.settings)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), Value::String(value)))
        .collect();
    let origins: Vec<&str> = queue.declared.iter().map(|(origin, _)| origin.as_str()).collect();
    json!({
        "queue": queue.name.as_str(),
        "number": queue.number,
        "declared_by": origins,
        "changed_by": queue.overridden.as_ref().map(|change| change.by.as_str()),
        "changed_at": queue.overridden.as_ref().map(|change| change.at.to_string()),
        "paused": queue.paused,
        "settings": settings,
    })
}

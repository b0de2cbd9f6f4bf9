//! `queue add`, `set`, `reset` and `list`.

use std::time::Duration;

use comfy_table::Cell;
use gristmill::port::{Declaration, Declared, Origin, Queue};
use gristmill::{QueueName, SettingsPatch};
use serde_json::{Value, json};

use gristmill_server::Deed;

use super::contract::declare_ours;
use super::{Session, who};
use crate::args::{QueueAddArgs, QueueResetArgs, QueueSetArgs};
use crate::failure::Failure;
use crate::output::table;
use crate::store::Missing;
use gristmill_contract::{duration, settings};

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
        declare_ours(session, &mill, &self.name).await?;
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
        let name = Some(self.name.to_string());
        let note = declared.changes.iter().map(change_text).collect::<Vec<_>>().join("; ");
        let note = Some(note).filter(|note| !note.is_empty());
        let deed = Deed { target: name.clone(), queue: name, note, ..Deed::default() };
        let action = if what == "reset" { "queues.reset" } else { "queues.change" };
        super::tell(&mill, &self.by, action, deed).await;
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
        // A queue that is new had no settings before.
        let text = if declared.created {
            format!("{}: {}", change.0, plain(&change.2))
        } else {
            change_text(change)
        };
        session.output.line(format_args!("  {text}"))?;
    }
    Ok(())
}

/// A changed setting in words: `max_attempts: 5 -> 3`.
pub(crate) fn change_text((name, before, after): &(&'static str, String, String)) -> String {
    format!("{name}: {} -> {}", plain(before), plain(after))
}

/// What the model says that it holds, as people write it: nobody should have to know
/// Rust to read it.
fn plain(value: &str) -> String {
    if let Some(inner) = value.strip_prefix("Some(").and_then(|v| v.strip_suffix(')')) {
        return plain(inner);
    }
    if let Some((_, fields)) = value.strip_suffix(" }").and_then(|v| v.split_once(" { ")) {
        let fields = fields.split(", ").map(|field| match field.split_once(": ") {
            Some((name, value)) => format!("{name}={}", plain(value)),
            None => field.to_owned(),
        });
        return fields.collect::<Vec<_>>().join(" ");
    }
    let millis = |number: &str, each: f64| {
        let number: f64 = number.parse().ok()?;
        let millis = (number * each).round();
        (millis >= 0.0).then(|| duration::show(Duration::from_millis(millis as u64)))
    };
    let span = match (value.strip_suffix("ms"), value.strip_suffix('s')) {
        (Some(number), _) => millis(number, 1.0),
        (None, Some(number)) => millis(number, 1_000.0),
        (None, None) => None,
    };
    let is_word = value.starts_with(|c: char| c.is_ascii_uppercase())
        && value.chars().all(|c| c.is_ascii_alphanumeric());
    match span {
        Some(span) => span,
        None if is_word => value.to_lowercase(),
        None => value.trim_matches('"').to_owned(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_said_without_rust() {
        for (held, said) in [
            ("Some(5)", "5"),
            ("None", "none"),
            ("3600s", "1h"),
            ("1.5s", "1.5s"),
            ("250ms", "250ms"),
            ("Active", "active"),
            ("true", "true"),
            ("Backoff { base: 2s, cap: 3600s, jitter: true }", "base=2s cap=1h jitter=true"),
            ("Some(Binding { table: \"item\", column: \"id\" })", "table=item column=id"),
        ] {
            assert_eq!(plain(held), said, "{held}");
        }
    }
}

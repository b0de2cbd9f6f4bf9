//! `operations`: what services do to all tasks that match a filter.

use gristmill_server::{Deed, OperationView, Operations as Stored};
use serde_json::Value;

use super::{Session, tell, who};
use crate::args::{OperationsArgs, OperationsCommand};
use crate::failure::{Exit, Failure};
use crate::output::table;
use crate::store::Missing;

/// Something about operations.
#[derive(Debug)]
pub(crate) enum Operations {
    List,
    Show(String),
    Stop { id: String, by: String },
}

impl Operations {
    pub(crate) fn meant(args: OperationsArgs) -> Result<Self, Failure> {
        Ok(match args.command {
            None | Some(OperationsCommand::List) => Operations::List,
            Some(OperationsCommand::Show(args)) => Operations::Show(args.id),
            Some(OperationsCommand::Stop(args)) => {
                Operations::Stop { id: args.id, by: who(args.by)? }
            }
        })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let stored = Stored::of(&mill);
        let done = match &self {
            Operations::List => stored.list().await.map(|all| (None, all)),
            Operations::Show(id) => {
                stored.get(id).await.map(|one| (Some(id), one.into_iter().collect()))
            }
            Operations::Stop { id, by } => {
                stored.stop(id, by).await.map(|one| (Some(id), one.into_iter().collect()))
            }
        };
        if let (Operations::Stop { id, by }, Ok((_, found))) = (&self, &done)
            && let Some(one) = found.first()
        {
            let (target, queue) = (Some(id.clone()), one.queue().map(str::to_owned));
            tell(&mill, by, "operations.stop", Deed { target, queue, ..Deed::default() }).await;
        }
        mill.close().await?;
        let (named, found): (Option<&String>, Vec<OperationView>) = done?;
        match (named, found.first()) {
            (Some(id), None) => {
                let why =
                    format!("there is no operation '{id}'; 'gristmill operations' lists them");
                Err(Failure::new(Exit::Refused, "unknown_operation", why))
            }
            (Some(_), Some(one)) if session.output.json => session.output.value(one),
            (Some(_), Some(one)) => show(one, session),
            (None, _) if session.output.json => session.output.value(&found),
            (None, None) => session.output.line("no operations"),
            (None, Some(_)) => list(&found, session),
        }
    }
}

fn word(state: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(state).unwrap_or(Value::Null);
    value.as_str().unwrap_or_default().to_owned()
}

fn list(found: &[OperationView], session: &Session) -> Result<(), Failure> {
    let mut shown = table::new(&["id", "action", "state", ">moved", ">duplicates", "by", "began"]);
    for one in found {
        shown.add_row([
            one.id.clone(),
            one.action.clone(),
            word(&one.state),
            one.moved.to_string(),
            one.duplicates.to_string(),
            one.by.clone(),
            one.began_at.clone(),
        ]);
    }
    session.output.line(table::text(&shown))
}

fn show(one: &OperationView, session: &Session) -> Result<(), Failure> {
    let mut shown = table::new(&["", ""]);
    if let Ok(Value::Object(fields)) = serde_json::to_value(one) {
        for (name, value) in fields {
            let value = match value {
                Value::Null => continue,
                Value::String(text) => text,
                Value::Object(parts) => {
                    let said = parts.into_iter().filter(|(_, value)| !value.is_null());
                    let said: Vec<String> = said
                        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or("")))
                        .collect();
                    if said.is_empty() { "all".to_owned() } else { said.join(", ") }
                }
                other => other.to_string(),
            };
            shown.add_row([name, value]);
        }
    }
    session.output.line(table::text(&shown).trim_start())
}

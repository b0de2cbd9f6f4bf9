//! `contract`: checked, compared, printed as JSON Schema, registered.

use std::path::{Path, PathBuf};

use gristmill::contract::register;
use gristmill::port::name::did_you_mean;
use gristmill::{Mill, QueueName};
use gristmill_contract::evolution::{self, Change};
use gristmill_contract::{Contract, read_files, schema};
use serde::Serialize;
use serde_json::json;

use super::Session;
use super::queue::change_text;
use crate::args::{ContractCheckArgs, ContractRegisterArgs, ContractSchemaArgs};
use crate::config;
use crate::contracts::Contracts;
use crate::failure::{Exit, Failure};
use crate::output::count;
use crate::store::{self, Missing};

/// Check one contract, or compare two.
#[derive(Debug)]
pub(crate) struct Check {
    file: PathBuf,
    new: Option<PathBuf>,
}

impl Check {
    pub(crate) fn meant(args: ContractCheckArgs) -> Self {
        Check { file: args.file, new: args.new }
    }

    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let contract = open(std::slice::from_ref(&self.file))?;
        let Some(new) = &self.new else {
            let shown = self.file.display();
            let fields: usize = contract.queues.iter().map(|queue| queue.fields.len()).sum();
            let queues = contract.queues.len();
            return session.output.either(
                &json!({ "contract": shown.to_string(), "queues": queues, "fields": fields }),
                format_args!(
                    "{shown} is fine: {} with {}",
                    count(queues as u64, "queue"),
                    count(fields as u64, "field")
                ),
            );
        };
        let changes = evolution::compare(&contract, &open(std::slice::from_ref(new))?);
        if session.output.json {
            let all: Vec<ChangeJson<'_>> = changes.iter().map(ChangeJson::of).collect();
            session.output.value(&all)?;
        } else if changes.is_empty() {
            session.output.line("no differences in queues and fields")?;
        } else {
            let lines: Vec<String> = changes.iter().map(Change::to_string).collect();
            session.output.line(lines.join("\n"))?;
        }
        if evolution::is_breaking(&changes) {
            return Err(Failure::new(
                Exit::Refused,
                "breaking",
                "the new contract breaks the old one: give a changed queue a new name and id",
            ));
        }
        Ok(())
    }
}

/// A difference as programs get it.
#[derive(Serialize)]
struct ChangeJson<'a> {
    queue: &'a str,
    weight: &'static str,
    change: &'a str,
}

impl<'a> ChangeJson<'a> {
    fn of(change: &'a Change) -> Self {
        let Change { queue, weight, what } = change;
        ChangeJson { queue, weight: weight.as_str(), change: what }
    }
}

/// Print a schema.
#[derive(Debug)]
pub(crate) struct Schema {
    /// Nothing: what the store keeps.
    file: Option<PathBuf>,
    queue: Option<String>,
}

impl Schema {
    pub(crate) fn meant(args: ContractSchemaArgs) -> Self {
        Schema { file: args.file, queue: args.queue }
    }

    pub(crate) const fn names_a_file(&self) -> bool {
        self.file.is_some()
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let contract = match self.file {
            Some(file) => open(&[file])?,
            None => kept(session).await?,
        };
        let schema = match &self.queue {
            None => schema::of_contract(&contract),
            Some(name) => {
                let queue = contract.queue(name).ok_or_else(|| {
                    let known = contract.queues.iter().map(|queue| queue.name.as_str());
                    let hint = did_you_mean(name, known)
                        .map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
                    let said = format!("there is no queue '{name}' in the contract{hint}");
                    Failure::new(Exit::Refused, "unknown_queue", said)
                })?;
                schema::of_queue(queue)
            }
        };
        session.output.line(format_args!("{schema:#}"))
    }
}

/// The contract of the queues as the store has it.
async fn kept(session: &Session) -> Result<Contract, Failure> {
    let mill = session.open(Missing::Fail).await?;
    let contract = Contracts::of(&mill).await?.whole();
    mill.close().await?;
    if contract.queues.is_empty() {
        let said = format!("no queue of {} has a contract: name a file", session.url());
        return Err(Failure::new(Exit::Refused, "no_contract", said));
    }
    Ok(contract)
}

/// Have the store keep a contract.
#[derive(Debug)]
pub(crate) struct Register {
    files: Vec<PathBuf>,
    force: bool,
}

impl Register {
    pub(crate) fn meant(args: ContractRegisterArgs) -> Self {
        Register { files: args.files, force: args.force }
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let contract = open(&self.files)?;
        let mill = session.open(Missing::Create).await?;
        for queue in &contract.queues {
            let registered = register(&mill, queue, self.force).await?;
            let name = &queue.name;
            if session.output.json {
                session.output.value(&json!({
                    "queue": name.as_str(), "number": queue.number,
                    "created": registered.declared.created,
                    "changes": registered.changes.iter().map(ChangeJson::of).collect::<Vec<_>>(),
                }))?;
                continue;
            }
            let what = if registered.declared.created { "added" } else { "registered" };
            session.output.line(format_args!("queue {name} {what} with id {}", queue.number))?;
            for change in &registered.changes {
                session.output.line(format_args!(
                    "  {}: {}",
                    change.weight.as_str(),
                    change.what
                ))?;
            }
            for change in
                registered.declared.changes.iter().filter(|_| !registered.declared.created)
            {
                session.output.line(format_args!("  {}", change_text(change)))?;
            }
        }
        mill.close().await?;
        Ok(())
    }
}

/// Declares a queue that is to be created as this folder's contract has it, where the store
/// is the one of this folder's configuration. By its name alone it would get a number, and
/// the contract, which has another, could never be declared on this store again.
pub(super) async fn declare_ours(
    session: &Session,
    mill: &Mill,
    queue: &QueueName,
) -> Result<(), Failure> {
    let file = Path::new(config::FILE);
    // One that names no store is a mistake for whoever meant its store.
    let Ok(ours) = config::store_of(file) else { return Ok(()) };
    if !file.exists() || ours.unwrap_or_else(store::default) != session.url() {
        return Ok(());
    }
    if mill.inspect().queues().await?.iter().any(|known| known.name == *queue) {
        return Ok(());
    }
    if let Some(contract) = config::read(file)?.contract.queue(queue.as_str()) {
        register(mill, contract, false).await?;
    }
    Ok(())
}

/// Reads contracts that a command names.
pub(crate) fn open(files: &[PathBuf]) -> Result<Contract, Failure> {
    read_files(files)
        .map_err(|error| Failure { code: "contract", ..Failure::usage(error.to_string()) })
}

//! The contracts a configuration names: their queues are declared with it, and
//! payloads written in it have to fit them.

use std::path::Path;

use gristmill::{Payload, QueueName};
use gristmill_contract::yaml::{Fields, Mistakes, Node, Value};
use gristmill_contract::{ContractError, read_files, view};

use super::{Config, QueueConfig};

/// Reads the contracts; paths are relative to the configuration's folder.
pub(crate) fn read(
    top: &mut Fields<'_>,
    folder: &Path,
    config: &mut Config,
    mistakes: &mut Mistakes,
) -> Option<ContractError> {
    let mut files = Vec::new();
    for node in top.list("contracts", mistakes) {
        let text = node.scalar().filter(|_| !matches!(node.value, Value::Null));
        match text {
            Some(file) if folder.join(&file).is_file() => files.push(folder.join(file)),
            Some(file) => mistakes.add(node, format!("there is no contract {file}")),
            None => mistakes.add(node, "contracts are names of files: queues.yaml".to_owned()),
        }
    }
    config.files.extend(files.iter().cloned());
    match read_files(&files) {
        Ok(contract) => {
            config.contract = contract;
            None
        }
        Err(error) => Some(error),
    }
}

/// Queues that only a contract has are known too.
pub(crate) fn add_queues(config: &mut Config) {
    for queue in &config.contract.queues {
        if !config.queues.iter().any(|known| known.name == queue.name) {
            config.queues.push(QueueConfig::of_contract(queue.name.clone()));
        }
    }
}

/// A payload of the file for a queue: in the contract's form where the queue
/// has one, as JSON otherwise.
pub(crate) fn payload(
    node: &Node,
    queue: Option<&QueueName>,
    config: &Config,
    mistakes: &mut Mistakes,
) -> Payload {
    let json = node.json();
    let contract = queue.and_then(|queue| config.contract.queue(queue.as_str()));
    let fitted = contract.map(|contract| view::to_payload(contract, &json));
    match fitted {
        Some(Ok(payload)) => payload,
        Some(Err(wrong)) => {
            for wrong in wrong {
                // At the field, if it is there.
                let field = wrong.path().split('[').next().unwrap_or_default();
                let at = match &node.value {
                    Value::Map(entries) => entries.iter().find(|(key, _)| key.name == field),
                    _ => None,
                };
                let known = contract.is_some_and(|contract| contract.field(field).is_some());
                match at {
                    Some((_, value)) if known => mistakes.add(value, wrong.to_string()),
                    Some((key, _)) => mistakes.add_at(key.line, key.column, wrong.to_string()),
                    None => mistakes.add(node, wrong.to_string()),
                }
            }
            Payload::default()
        }
        // A value made of texts, numbers and lists is always written.
        None => Payload::json(json.to_string()),
    }
}

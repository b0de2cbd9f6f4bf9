//! Contracts at run time: what generated code stands on, and how a store
//! learns of a contract.
//!
//! Generated code has a `declare` that calls [`declare`] here. The store keeps
//! each queue's contract, and a contract that could not read the tasks that
//! stand is refused.

pub use bytes::Bytes;
pub use gristmill_contract::wire::{Fields, MapReader, MapWriter, QueueSpec, Wrong, needs};
pub use gristmill_contract::{Contract, QueueContract, schema, view};

use gristmill_contract::evolution::{self, Change, Weight};
use gristmill_core::{
    ContractAnswer, ContractChange, Declaration, Declared, Origin, Payload, Queue, Why,
};

use crate::worker::{BatchContext, Typed, Worker};
use crate::{Error, Mill, TaskType};

/// What a generated handler fails with: anything that says why.
pub type HandlerError = Box<dyn std::error::Error + Send + Sync>;

/// How a generated handler ends: what it left open is done, or goes to the
/// queue's policy.
pub type Handled = Result<(), HandlerError>;

/// How often a contract is compared anew when others register theirs at the
/// same time.
const TRIES: usize = 10;

impl<S: Clone + Send + Sync + 'static> Worker<S> {
    /// As [`Worker::handle_batch`], for generated code: its closures say less.
    #[doc(hidden)]
    pub fn handle_queue<T, F, R>(self, handle: F) -> Self
    where
        T: TaskType,
        F: Fn(Vec<Typed<T>>, BatchContext) -> R + Send + Sync + 'static,
        R: Future<Output = Handled> + Send + 'static,
    {
        self.handle_batch(handle)
    }
}

/// Makes a module of what a build script generated from a contract of the same
/// name: `gristmill::include_contract!(pub mod queues);` for `queues.yaml`.
#[macro_export]
macro_rules! include_contract {
    ($(#[$attribute:meta])* $visible:vis mod $name:ident) => {
        $(#[$attribute])*
        #[allow(dead_code, unreachable_pub, reason = "not all of it is used")]
        $visible mod $name {
            include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".rs"));
        }
    };
}

/// The fields as a payload.
///
/// # Errors
/// When a value has no wire form.
pub fn to_payload(fields: &impl Fields) -> Result<Payload, Error> {
    gristmill_contract::wire::encode(fields).map_err(|wrong| Error::DoesNotFit(wrong.to_string()))
}

/// The fields of a payload.
///
/// # Errors
/// When the payload is not of the contract.
pub fn from_payload<T: Fields>(payload: &Payload) -> Result<T, Error> {
    gristmill_contract::wire::decode(payload).map_err(|wrong| {
        let queue = T::SPEC.name;
        let words = format!("the payload does not fit the contract of {queue}");
        Error::Decode(Why::from(words).caused_by(wrong))
    })
}

/// Declares the queues of a contract with their settings, and registers the
/// contract of each.
///
/// # Errors
/// As [`register`].
pub async fn declare(mill: &Mill, queues: &[QueueSpec]) -> Result<(), Error> {
    for spec in queues {
        let contract =
            spec.contract().map_err(|why| Error::Contract { queue: spec.name.to_owned(), why })?;
        let registered = register(mill, &contract, false).await?;
        for (setting, before, after) in registered.declared.changes {
            if !registered.declared.created {
                let queue = spec.name;
                tracing::info!(queue, setting, before, after, "a contract changed a setting");
            }
        }
    }
    Ok(())
}

/// What registering a contract changed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Registered {
    /// What it made of the queue's settings.
    pub declared: Declared,
    /// How it differs from the contract before it.
    pub changes: Vec<Change>,
}

/// Declares one queue of a contract and has the store keep its contract.
///
/// # Errors
/// When the store cannot answer, the queue has another number, or the new
/// contract could not read tasks that stand; the last can be forced.
pub async fn register(
    mill: &Mill,
    contract: &QueueContract,
    force: bool,
) -> Result<Registered, Error> {
    let store = mill.store();
    let declaration = Declaration {
        name: contract.name.clone(),
        number: Some(contract.number),
        settings: contract.settings.clone(),
        origin: Origin::Contract,
    };
    let mut declared = None;
    for _ in 0..TRIES {
        let queues = store.queues().await?;
        let queue = queues.into_iter().find(|queue| queue.name == contract.name);
        let Some(queue) = queue else {
            // A new one: there is nothing that could break.
            declared = Some(store.declare_queue(declaration.clone()).await?);
            continue;
        };
        if queue.number != contract.number {
            return Err(refused(
                contract,
                &format!(
                    "it has number {} in the store and {} in the contract: a queue keeps its number",
                    queue.number, contract.number
                ),
            ));
        }
        let kept = queue.contract.as_deref().and_then(QueueContract::from_text);
        let changes = changes(&queue, kept.as_ref(), contract)?;
        let text = kept.map_or_else(|| contract.text(), |kept| contract.following(&kept).text());
        if queue.contract.as_ref() != Some(&text) {
            let change = ContractChange {
                queue: contract.name.clone(),
                text,
                replaces: queue.contract.clone(),
                breaking: evolution::is_breaking(&changes) && !force,
            };
            match store.register_contract(change).await? {
                ContractAnswer::Registered => {}
                ContractAnswer::Changed => continue,
                ContractAnswer::TasksStand(tasks) => {
                    return Err(refused(contract, &broken(&changes, tasks)));
                }
            }
        }
        let declared = match declared {
            Some(declared) => declared,
            None => store.declare_queue(declaration).await?,
        };
        return Ok(Registered { declared, changes });
    }
    Err(refused(contract, "others keep changing its contract: try again"))
}

/// How the contract differs from the one that the store keeps.
fn changes(
    queue: &Queue,
    kept: Option<&QueueContract>,
    contract: &QueueContract,
) -> Result<Vec<Change>, Error> {
    if queue.contract.is_none() {
        return Ok(Vec::new());
    }
    match kept {
        Some(old) => Ok(evolution::fields(old, contract)),
        None => Ok(vec![Change {
            queue: queue.name.to_string(),
            weight: Weight::Breaking,
            what: "the contract in the store is of a form that this version cannot read".to_owned(),
        }]),
    }
}

fn broken(changes: &[Change], tasks: u64) -> String {
    let breaking = changes.iter().filter(|change| change.weight == Weight::Breaking);
    let what: Vec<&str> = breaking.map(|change| change.what.as_str()).collect();
    format!(
        "the contract breaks the one in the store, and {tasks} of its tasks stand ({}); have them \
         done first, give the queue a new name and id, or say --force to 'gristmill contract \
         register'",
        what.join("; ")
    )
}

fn refused(contract: &QueueContract, why: &str) -> Error {
    Error::Contract { queue: contract.name.to_string(), why: why.to_owned() }
}

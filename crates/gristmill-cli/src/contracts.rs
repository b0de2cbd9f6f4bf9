//! The contracts that the store keeps, for those who put and those who look.

use std::collections::HashMap;

use gristmill::port::NewTask;
use gristmill::{Encoding, Error, Mill, Payload, QueueName, Refusal};
use gristmill_contract::{Contract, QueueContract, view};

/// Each queue's contract.
#[derive(Debug, Default)]
pub(crate) struct Contracts(HashMap<QueueName, QueueContract>);

impl Contracts {
    /// Those of all queues. One that this version cannot read counts as none:
    /// payloads are then shown and taken as they are.
    pub(crate) async fn of(mill: &Mill) -> Result<Self, Error> {
        let queues = mill.inspect().queues().await?;
        let read = |queue: gristmill::port::Queue| {
            Some((queue.name, QueueContract::from_text(queue.contract.as_deref()?)?))
        };
        Ok(Contracts(queues.into_iter().filter_map(read).collect()))
    }

    pub(crate) fn get(&self, queue: &QueueName) -> Option<&QueueContract> {
        self.0.get(queue)
    }

    /// All of them as one, in the order of their numbers.
    pub(crate) fn whole(self) -> Contract {
        let mut queues: Vec<QueueContract> = self.0.into_values().collect();
        queues.sort_by_key(|queue| queue.number);
        Contract { queues }
    }

    /// A payload that is MessagePack of its queue's contract, as JSON; nothing
    /// where no contract says what it is.
    ///
    /// # Errors
    /// In words, when it is not of the contract.
    pub(crate) fn as_json(
        &self,
        queue: &QueueName,
        payload: &Payload,
    ) -> Result<Option<String>, String> {
        match self.get(queue).filter(|_| payload.encoding == Encoding::Msgpack) {
            Some(contract) => view::to_json(contract, payload).map(Some).map_err(|wrong| {
                format!("the payload does not fit the contract of {queue}: {wrong}")
            }),
            None => Ok(None),
        }
    }
}

/// A task as its queue's contract wants it: JSON becomes MessagePack, unless it
/// is to be kept.
pub(crate) fn fit(
    contract: Option<&QueueContract>,
    task: NewTask,
    keep_json: bool,
) -> Result<NewTask, Refusal> {
    let Some(contract) = contract else { return Ok(task) };
    let misfit = |why: String| Refusal::DoesNotFit(why);
    let payload = match task.payload.encoding {
        Encoding::Json => {
            let fitted = view::text_to_payload(contract, &task.payload.bytes).map_err(misfit)?;
            if keep_json { task.payload } else { fitted }
        }
        Encoding::Msgpack => {
            view::to_json(contract, &task.payload).map_err(|wrong| misfit(wrong.to_string()))?;
            task.payload
        }
        Encoding::Raw => {
            let name = &contract.name;
            return Err(misfit(format!("{name} wants JSON with its fields, or msgpack")));
        }
    };
    Ok(NewTask { payload, ..task })
}

//! The queues and their contracts, looked up at most once a second: a put must not
//! cost a second question to the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gristmill::port::NewTask;
use gristmill::port::name::did_you_mean;
use gristmill::{Encoding, Payload, QueueName, Refusal, Settings, StoreError};
use gristmill_contract::{QueueContract, view};

use crate::problem::Answer;
use crate::service::Service;

/// How long a look is good for.
const FRESH: Duration = Duration::from_secs(1);

/// What was seen last.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<Option<(Instant, Arc<Queues>)>>);

/// Every queue.
#[derive(Debug, Default)]
pub(crate) struct Queues(HashMap<QueueName, KnownQueue>);

#[derive(Debug)]
struct KnownQueue {
    /// Its contract, where it has one that this version can read.
    contract: Option<QueueContract>,
    max_wait: Option<Duration>,
    lease: Duration,
}

impl Queues {
    /// A task as its queue's contract wants it: JSON becomes MessagePack.
    pub(crate) fn fit(&self, queue: &QueueName, task: NewTask) -> Result<NewTask, Refusal> {
        let Some(contract) = self.0.get(queue).and_then(|known| known.contract.as_ref()) else {
            return Ok(task);
        };
        let payload = match task.payload.encoding {
            Encoding::Json => {
                view::text_to_payload(contract, &task.payload.bytes).map_err(Refusal::DoesNotFit)?
            }
            Encoding::Msgpack => {
                view::to_json(contract, &task.payload)
                    .map_err(|wrong| Refusal::DoesNotFit(wrong.to_string()))?;
                task.payload
            }
            Encoding::Raw => {
                let name = &contract.name;
                let why = format!("{name} wants JSON with its fields, or msgpack");
                return Err(Refusal::DoesNotFit(why));
            }
        };
        Ok(NewTask { payload, ..task })
    }

    /// What its payloads hold, where a contract says so.
    pub(crate) fn contract(&self, queue: &QueueName) -> Option<&QueueContract> {
        self.0.get(queue)?.contract.as_ref()
    }

    /// How long a claim lasts unless its caller says so.
    pub(crate) fn lease(&self, queue: &QueueName) -> Duration {
        self.0.get(queue).map_or(Settings::default().lease, |known| known.lease)
    }

    /// How long a task of it may wait before somebody is told.
    pub(crate) fn max_wait(&self, queue: &QueueName) -> Option<Duration> {
        self.0.get(queue)?.max_wait
    }

    /// A payload that is MessagePack of its queue's contract, as JSON.
    pub(crate) fn as_json(&self, queue: &QueueName, payload: &Payload) -> Option<String> {
        let contract = self.0.get(queue)?.contract.as_ref()?;
        (payload.encoding == Encoding::Msgpack).then(|| view::to_json(contract, payload).ok())?
    }
}

impl Known {
    /// The queues, as they were within the last second.
    pub(crate) async fn queues(&self, service: &Service) -> Answer<Arc<Queues>> {
        if let Some((at, queues)) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner)
            && at.elapsed() < FRESH
        {
            return Ok(queues.clone());
        }
        let queues = service.store.queues().await?.into_iter().map(|queue| {
            let contract = queue.contract.as_deref().and_then(QueueContract::from_text);
            (
                queue.name,
                KnownQueue {
                    contract,
                    max_wait: queue.settings.max_wait,
                    lease: queue.settings.lease,
                },
            )
        });
        let queues = Arc::new(Queues(queues.collect()));
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((Instant::now(), queues.clone()));
        Ok(queues)
    }

    /// Forgets what was seen: a queue was changed here.
    pub(crate) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Refuses a queue that nobody declared.
    pub(crate) async fn expect(&self, service: &Service, queue: &QueueName) -> Answer<Arc<Queues>> {
        let queues = self.queues(service).await?;
        if queues.0.contains_key(queue) {
            return Ok(queues);
        }
        // It may be new.
        self.forget();
        let queues = self.queues(service).await?;
        if queues.0.contains_key(queue) {
            return Ok(queues);
        }
        let names = queues.0.keys().map(QueueName::as_str);
        let suggestion = did_you_mean(queue.as_str(), names).map(str::to_owned);
        Err(StoreError::UnknownQueue { name: queue.to_string(), suggestion }.into())
    }
}

//! `put`: one task, and the answer in one line.

use std::io::Read;
use std::time::Duration;

use gristmill::port::{Encoding, NewTask, PutAnswer, PutRequest, Refusal, Start};
use gristmill::{Mill, Payload, QueueName, StoreError};
use jiff::tz::TimeZone;
use serde::Serialize;
use serde::de::IgnoredAny;

use super::contract::declare_ours;
use super::{Session, put_wait, text};
use crate::args::PutArgs;
use crate::contracts::{Contracts, fit};
use crate::failure::{Exit, Failure};
use crate::output::time;
use crate::store::Missing;
use crate::when;
use gristmill_contract::duration;
use gristmill_contract::task_settings::Said;

/// Longest payload that is read from standard input before the store is asked
/// whether it would take it.
pub(super) const INPUT_MAX: u64 = 64 << 20;

/// Put one task.
#[derive(Debug)]
pub(crate) struct Put {
    queue: QueueName,
    payload: From,
    task: NewTask,
    create: bool,
    /// JSON was asked for by name.
    keep_json: bool,
    /// A payload of no bytes is meant.
    allow_empty: bool,
    /// For how long the task's end is waited for.
    wait: Option<Duration>,
}

/// Where the payload comes from.
#[derive(Debug)]
enum From {
    Given(Payload),
    Input(Option<Encoding>),
}

impl Put {
    pub(crate) fn meant(args: PutArgs) -> Result<Self, Failure> {
        let task = options(&args)?;
        if args.envelope {
            return Err(Failure::usage("--envelope is for lines: it needs --from FILE"));
        }
        let encoding: Option<Encoding> =
            args.encoding.map(|e| e.parse()).transpose().map_err(Failure::usage)?;
        let keep_json = encoding == Some(Encoding::Json);
        let payload = match args.payload {
            Some(dash) if dash == "-" => From::Input(encoding),
            Some(given) => From::Given(payload(given.into_bytes(), encoding)?),
            None => {
                return Err(Failure::usage(
                    "the payload is missing: give it as an argument, '-' to read it from standard \
                     input, --from FILE for one task a line, or --lines for plain lines",
                ));
            }
        };
        let wait = args.wait.as_deref().map(duration::parse).transpose();
        let wait = wait.map_err(Failure::usage)?;
        let queue = QueueName::new(&args.queue)?;
        let (create, allow_empty) = (args.create, args.allow_empty);
        Ok(Put { queue, payload, task, create, keep_json, allow_empty, wait })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let payload = match self.payload {
            From::Given(payload) => payload,
            From::Input(encoding) => {
                let mut bytes = Vec::new();
                std::io::stdin()
                    .take(INPUT_MAX + 1)
                    .read_to_end(&mut bytes)
                    .map_err(|error| Failure::io("standard input", &error))?;
                if bytes.len() as u64 > INPUT_MAX {
                    // Cut off, it would be another payload.
                    return Err(Failure::new(
                        Exit::Refused,
                        "payload_too_large",
                        format!("the payload has over {INPUT_MAX} bytes: put a reference to it"),
                    ));
                }
                self::payload(bytes, encoding)?
            }
        };
        if payload.bytes.is_empty() && !self.allow_empty {
            return Err(Failure::new(
                Exit::Refused,
                "empty_payload",
                "the payload is empty, as when what should have made it failed: nothing was put; \
                 say --allow-empty if it is meant",
            ));
        }
        let missing = if self.create { Missing::Create } else { Missing::Offer };
        let mill = session.open(missing).await?;
        if self.create {
            declare_ours(session, &mill, &self.queue).await?;
        }
        let contracts = Contracts::of(&mill).await?;
        let task =
            fit(contracts.get(&self.queue), NewTask { payload, ..self.task }, self.keep_json);
        let start = task.as_ref().map_or(Start::Now, |task| task.start);
        let answers = put(&mill, &self.queue, vec![task], self.create).await?;
        let answer = answers.into_iter().next().ok_or_else(|| {
            Failure::new(Exit::Wrong, "wrong", "the store gave no answer to the put")
        })?;
        if let (Some(limit), Some(id)) = (self.wait, answer.id()) {
            let waited = put_wait::wait(session, &mill, &answer, id, limit).await;
            mill.close().await?;
            return waited;
        }
        mill.close().await?;
        if session.output.json {
            session.output.value(&answer_json(&answer))?;
        }
        match &answer {
            PutAnswer::Refused(refusal) => Err(refused(refusal)),
            _ if session.output.json => Ok(()),
            PutAnswer::Enqueued { .. } => {
                let due = match start {
                    // As it was understood: a time of day may be another day's.
                    Start::At(at) if at > time::now() => {
                        format!(", due {}", when::shown(at, &TimeZone::system()))
                    }
                    Start::At(_) => ", due now: that time is past".to_owned(),
                    _ => String::new(),
                };
                session.output.line(format_args!("{}{due}", sentence(&answer)))
            }
            _ => session.output.line(sentence(&answer)),
        }
    }
}

/// When something runs, as `--delay` or `--at` says it.
pub(crate) fn start(delay: Option<&str>, at: Option<&str>) -> Result<Start, Failure> {
    match (delay, at) {
        (Some(delay), _) => Ok(Start::After(duration::parse(delay).map_err(Failure::usage)?)),
        (_, Some(at)) => {
            let at = when::read(at, time::now(), &TimeZone::system());
            Ok(Start::At(at.map_err(Failure::usage)?))
        }
        _ => Ok(Start::Now),
    }
}

/// What the flags say about a task, apart from its payload.
pub(crate) fn options(args: &PutArgs) -> Result<NewTask, Failure> {
    let named = |what: &str, value: &Option<String>| {
        value.clone().map(|value| text(what, value)).transpose()
    };
    let start = start(args.delay.as_deref(), args.at.as_deref())?;
    let mut own = Said::default();
    for (name, text) in [
        ("timeout", &args.timeout),
        ("max_attempts", &args.max_attempts),
        ("backoff", &args.backoff),
    ] {
        if let Some(text) = text {
            own.text(name, text).map_err(|wrong| Failure::usage(wrong.to_string()))?;
        }
    }
    let mut settings = own.settings().map_err(|wrong| Failure::usage(wrong.to_string()))?;
    if args.wait.is_some() {
        settings.set_wanted();
    }
    Ok(NewTask {
        key: named("--key", &args.key)?,
        group: named("--group", &args.group)?,
        source: named("--source", &args.source)?,
        id: named("--id", &args.id)?,
        priority: args.priority,
        start,
        settings,
        ..NewTask::default()
    })
}

/// The bytes with their encoding. What looks like JSON and is not is taken for
/// a mistake, unless the encoding is said.
pub(super) fn payload(bytes: Vec<u8>, said: Option<Encoding>) -> Result<Payload, Failure> {
    let json = serde_json::from_slice::<IgnoredAny>(&bytes);
    let looks_like_json = matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['));
    let encoding = match (said, &json) {
        (Some(Encoding::Json) | None, Err(error)) if said.is_some() || looks_like_json => {
            return Err(Failure::usage(format!(
                "the payload is not JSON: {error}; correct it, or say --encoding raw"
            )));
        }
        (Some(said), _) => said,
        (None, Ok(_)) => Encoding::Json,
        (None, Err(_)) => Encoding::Raw,
    };
    Ok(Payload { bytes: bytes.into(), encoding })
}

/// Puts the tasks that fit their contract, and answers for all in order.
pub(crate) async fn put(
    mill: &Mill,
    queue: &QueueName,
    tasks: Vec<Result<NewTask, Refusal>>,
    create: bool,
) -> Result<Vec<PutAnswer>, StoreError> {
    let mut fitting = Vec::with_capacity(tasks.len());
    let mut answers: Vec<Option<PutAnswer>> = Vec::with_capacity(tasks.len());
    for task in tasks {
        answers.push(match task {
            Ok(task) => {
                fitting.push(task);
                None
            }
            Err(refusal) => Some(PutAnswer::Refused(refusal)),
        });
    }
    let mut put = if fitting.is_empty() {
        Vec::new().into_iter()
    } else {
        put_fitting(mill, queue, fitting, create).await?.into_iter()
    };
    Ok(answers.into_iter().filter_map(|answer| answer.or_else(|| put.next())).collect())
}

/// Puts, and declares the queue first if it has to and may.
async fn put_fitting(
    mill: &Mill,
    queue: &QueueName,
    tasks: Vec<NewTask>,
    create: bool,
) -> Result<Vec<PutAnswer>, StoreError> {
    let request = PutRequest { queue: queue.clone(), tasks, atomic: false };
    if !create {
        return Ok(mill.store().put(request).await?.answers);
    }
    let answers = mill.store().put(request.clone()).await?.answers;
    let unknown = matches!(answers.first(), Some(PutAnswer::Refused(Refusal::UnknownQueue { .. })));
    if !unknown {
        return Ok(answers);
    }
    // Only now: declaring a queue that stands would say its settings anew.
    let declaration = gristmill::port::Declaration::new(queue.clone());
    mill.store().declare_queue(declaration).await?;
    Ok(mill.store().put(request).await?.answers)
}

/// An answer in the fixed form that scripts rely on.
#[derive(Debug, Serialize)]
pub(crate) struct AnswerJson {
    outcome: &'static str,
    id: Option<i64>,
    reason: Option<&'static str>,
}

/// The answer in that form.
pub(crate) fn answer_json(answer: &PutAnswer) -> AnswerJson {
    let (outcome, reason) = match answer {
        PutAnswer::Enqueued { .. } => ("enqueued", None),
        PutAnswer::Duplicate { .. } => ("duplicate", None),
        PutAnswer::Replaced { .. } => ("replaced", None),
        PutAnswer::Refused(refusal) => ("refused", Some(refusal.code())),
    };
    AnswerJson { outcome, id: answer.id().map(|id| id.0), reason }
}

fn sentence(answer: &PutAnswer) -> String {
    match answer {
        PutAnswer::Enqueued { id } => format!("enqueued {id}"),
        PutAnswer::Duplicate { id, run_at, .. } => {
            let due = run_at.map_or_else(String::new, |at| {
                format!(", which is due {}", time::relative(at, time::now()))
            });
            format!("duplicate of {id}{due}")
        }
        PutAnswer::Replaced { id } => format!("replaced {id}"),
        PutAnswer::Refused(refusal) => refusal.to_string(),
    }
}

/// A refusal as the failure of the command, with what to do.
pub(crate) fn refused(refusal: &Refusal) -> Failure {
    let hint = match refusal {
        Refusal::UnknownQueue { suggestion: Some(_), .. } => " (or say --create)".to_owned(),
        Refusal::UnknownQueue { name, .. } => {
            format!("; declare it with 'gristmill queue add {name}', or say --create")
        }
        Refusal::QueueFull { .. } | Refusal::StoreFull { .. } => {
            "; try again when workers have caught up, or raise the queue's capacity".to_owned()
        }
        Refusal::PayloadTooLarge { .. } => {
            "; keep the data elsewhere and put a reference to it".to_owned()
        }
        Refusal::DoesNotFit(_) => {
            "; 'gristmill contract schema' shows what the contract wants".to_owned()
        }
        Refusal::IdReused { .. } => "; give the new task another id".to_owned(),
        Refusal::Twin { .. } => "; leave one of the two out".to_owned(),
        Refusal::NoSuchSubject { spelling: None, .. } => "; put the row first".to_owned(),
        _ => String::new(),
    };
    Failure::new(Exit::Refused, refusal.code(), format!("{refusal}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_json_if_it_is() {
        let read = |text: &str| payload(text.as_bytes().to_vec(), None);
        assert_eq!(read(r#"{"a":1}"#).map(|p| p.encoding), Ok(Encoding::Json));
        assert_eq!(read("42").map(|p| p.encoding), Ok(Encoding::Json));
        assert_eq!(read("hello").map(|p| p.encoding), Ok(Encoding::Raw));
        assert!(read(" {broken").is_err_and(|f| f.message.contains("--encoding raw")));
        assert!(payload(b"hello".to_vec(), Some(Encoding::Json)).is_err());
        let raw = payload(b"{broken".to_vec(), Some(Encoding::Raw));
        assert_eq!(raw.map(|p| p.encoding), Ok(Encoding::Raw));
    }

    #[test]
    fn answers_have_the_fixed_form() {
        let answer = PutAnswer::Refused(Refusal::QueueFull { capacity: 1 });
        assert_eq!(
            serde_json::to_string(&answer_json(&answer)).expect("json"),
            r#"{"outcome":"refused","id":null,"reason":"queue_full"}"#
        );
    }
}

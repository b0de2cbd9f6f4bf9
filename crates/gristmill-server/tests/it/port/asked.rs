//! What each verb is asked with, about one queue and what stands in it: for the matrix of
//! scopes.

use std::time::Duration;

use gristmill::QueueName;
use gristmill_core::assignment::MANAGER;
use gristmill_core::*;
use gristmill_remote::wire::{
    Back, Change, Find, Ids, Named, One, PauseQueue, PauseSchedule, Reset, Under, Wait, Which, Wire,
};
use gristmill_text::{ASSIGNMENTS, WORKERS};
use serde_json::{Value, json};

const MINUTE: Duration = Duration::from_secs(60);

/// What is asked about.
pub(crate) struct About<'a> {
    pub(crate) queue: &'a str,
    pub(crate) pending: &'a str,
    pub(crate) failed: &'a str,
    pub(crate) claimed: &'a str,
    pub(crate) lease: &'a str,
}

/// The body of a verb's request.
pub(crate) fn asked(verb: &str, about: &About<'_>) -> Value {
    let queue = QueueName::new(about.queue).unwrap();
    let schedule = ScheduleName::new(&format!("nightly-{queue}")).unwrap();
    let worker = WorkerId::new(&format!("worker-{queue}")).unwrap();
    let id = |text: &str| text.parse::<TaskId>().unwrap();
    let token: Token = about.lease.parse().unwrap();
    let by = "ada".to_owned();
    let wait = |queues| Wait { queues, since: "one.1".to_owned(), timeout: MINUTE }.write();
    match verb {
        "put" => {
            let tasks = vec![NewTask::new(Payload::json("1"))];
            PutRequest { queue, tasks, atomic: false }.write()
        }
        "claim" => {
            let (lease, source, token) = (None, None, Token::random().unwrap());
            ClaimRequest { queue, max: 1, lease, worker, source, token }.write()
        }
        "settle" => vec![Settlement::new(id(about.claimed), token, Outcome::Done)].write(),
        "extend" => vec![Extension::new(token, 5 * MINUTE)].write(),
        "checkpoint" => {
            let state = Kept::from(b"state".to_vec());
            vec![Checkpoint { id: id(about.claimed), token, state }].write()
        }
        "endings" => Ids { ids: vec![id(about.pending)] }.write(),
        "open_under" => Under { token }.write(),
        "wait" => wait(vec![queue]),
        "wait_ended" => wait(Vec::new()),
        "find" => {
            let keys = vec![format!("pending-{queue}")];
            Find { queue, keys }.write()
        }
        "get" => One { id: id(about.pending) }.write(),
        "list" => {
            let filter = TaskFilter { queue: Some(queue), ..TaskFilter::default() };
            ListRequest { filter, limit: 10, ..ListRequest::default() }.write()
        }
        "operate" => {
            let selection = Selection::Ids(vec![id(about.failed)]);
            Operation {
                action: Action::Retry,
                selection,
                limit: 10,
                by,
                note: None,
                start: gristmill_core::Start::Now,
            }
            .write()
        }
        "import" => Import { queue, tasks: Vec::new() }.write(),
        "declare_queue" => Declaration::new(queue).write(),
        "override_queue" => {
            let settings = SettingsPatch { batch_size: Some(7), ..SettingsPatch::default() };
            Change { queue, settings, by }.write()
        }
        "reset_queue" => Reset { queue, by }.write(),
        "pause_queue" => PauseQueue { queue, paused: true, by }.write(),
        "register_contract" => {
            let text = "contract".to_owned();
            ContractChange { queue, text, replaces: None, breaking: true }.write()
        }
        "minutes" => Back { queue, back: 5 * MINUTE }.write(),
        "declare_schedule" => ScheduleDeclaration {
            name: schedule,
            queue,
            rule: Rule::Every(MINUTE),
            zone: "UTC".to_owned(),
            payload: Some(Payload::json("1")),
            options: TaskOptions::default(),
            missed: Missed::Once,
            overlap: Overlap::Allow,
        }
        .write(),
        "remove_schedule" => Named { name: schedule }.write(),
        "pause_schedule" => PauseSchedule { name: schedule, paused: true, by }.write(),
        "fire" => {
            let tasks = vec![NewTask::new(Payload::json("1"))];
            let instant = Timestamp::EPOCH;
            Fire { schedule, instant, tasks, by_hand: true }.write()
        }
        "document" => Which { kind: ASSIGNMENTS.to_owned(), name: MANAGER.to_owned() }.write(),
        "documents" => DocumentList { kind: WORKERS.to_owned(), after: None, limit: 10 }.write(),
        "save_document" => {
            let body = json!({
                "id": worker.as_str(), "host": "here", "pid": 1, "version": "1", "queues": [queue.as_str()],
                "processors": [], "handled": [], "follows_term": null, "stopping": false,
            });
            let body = Some(body.to_string());
            DocumentChange::new(WORKERS, worker.as_str(), Expects::Anything, body).write()
        }
        _ => ().write(),
    }
}

//! What each verb is asked with, about one queue and what stands in it: for the matrix of
//! scopes.

use std::time::Duration;

use gristmill::QueueName;
use gristmill_core::*;
use gristmill_remote::wire::{
    Back, Campaign, Change, Find, Forget, Ids, Named, One, PauseQueue, PauseSchedule, Reset,
    Resign, Under, Wait, Which, Wire,
};
use serde_json::Value;

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
    let (by, role, kind) = ("ada".to_owned(), "somebody".to_owned(), "kind".to_owned());
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
        "campaign" => Campaign { role, who: worker, hold: MINUTE }.write(),
        "resign" => Resign { role, who: worker }.write(),
        "report_worker" => WorkerReport {
            id: worker,
            host: "here".to_owned(),
            pid: 1,
            version: "1".to_owned(),
            queues: vec![queue],
            processors: Vec::new(),
            handled: Vec::new(),
            follows_term: None,
            stopping: false,
        }
        .write(),
        "forget_worker" => Forget { id: worker }.write(),
        "publish_assignment" => {
            let published_at = Timestamp::EPOCH;
            Assignment { term: 1, shares: Vec::new(), published_at }.write()
        }
        "document" => Which { kind, name: "name".to_owned() }.write(),
        "documents" => DocumentList { kind, after: None, limit: 10 }.write(),
        "save_document" => {
            let (name, body) = ("name".to_owned(), Some("{}".to_owned()));
            DocumentChange { kind, name, expects: None, body }.write()
        }
        _ => ().write(),
    }
}

//! Roles, workers and the manager's word, over any store's documents: who reads them
//! and decides, here; the store says how old they are and takes one change of each.

use std::time::Duration;

use gristmill_core::assignment::MANAGER;
use gristmill_core::policy::role::{self, Campaign, Role};
use gristmill_core::worker::WORKER_KEPT;
use gristmill_core::{
    Assignment, Beside, Document, DocumentAnswer, DocumentChange, DocumentList, Expects,
    Leadership, Published, QueueName, Result, Store, StoreError, WorkerId, WorkerReport,
    WorkerView, document,
};
use serde::{Deserialize, Serialize};

use crate::assignment::AssignmentText;
use crate::worker::WorkerText;
use crate::{micros, parse, text, worker_id};

/// Documents that say who holds a role, by the role.
pub const ROLES: &str = "role";
/// Workers' last reports, by their ids.
pub const WORKERS: &str = "worker";
/// The manager's last word, under the manager's role.
pub const ASSIGNMENTS: &str = "assignment";

/// How often others may be faster before it counts as the store's trouble: each time, one
/// of them got what it wanted.
const TRIES: u32 = 100;

/// What the system's own parts agree on through a store.
pub trait ControlPlane: Store {
    /// Asks for a role, or renews it. Afterwards the one named in the answer
    /// holds it, and nobody else can for the time it says.
    fn campaign(
        &self,
        role: &str,
        who: &WorkerId,
        hold: Duration,
    ) -> impl Future<Output = Result<Leadership>> + Send {
        async move {
            for _ in 0..TRIES {
                let record = self.document(ROLES, role).await?;
                let known = record.as_ref().map(role_of).transpose()?;
                match role::campaign(known.as_ref().zip(record.as_ref()), who, hold) {
                    Campaign::Lost(answer) => return Ok(answer),
                    Campaign::Record(asked, expects, answer) => {
                        let change = role_change(role, expects, &asked)?;
                        match (self.save_document(change).await?, known) {
                            (DocumentAnswer::Saved(_), _) => return Ok(answer),
                            (DocumentAnswer::Young { left }, Some(known)) => {
                                return Ok(known.told(left));
                            }
                            _ => {}
                        }
                    }
                }
            }
            Err(raced(role))
        }
    }

    /// Gives a role up, and its term stays on record; returns whether `who` held it.
    fn resign(&self, role: &str, who: &WorkerId) -> impl Future<Output = Result<bool>> + Send {
        async move {
            for _ in 0..TRIES {
                let Some(record) = self.document(ROLES, role).await? else { return Ok(false) };
                let Some(given_up) = role_of(&record)?.given_up(who, &record) else {
                    return Ok(false);
                };
                let change = role_change(role, Expects::Version(record.version), &given_up)?;
                if let DocumentAnswer::Saved(_) = self.save_document(change).await? {
                    return Ok(true);
                }
            }
            Err(raced(role))
        }
    }

    /// Keeps a worker's report as its last; a power cut may take it.
    fn report_worker(&self, report: WorkerReport) -> impl Future<Output = Result<()>> + Send {
        async move {
            let body = text(&WorkerText::new(&report))?;
            let (durable, keep) = (false, Some(WORKER_KEPT));
            let id = report.id.as_str();
            let change = DocumentChange::new(WORKERS, id, Expects::Anything, Some(body));
            self.save_document(DocumentChange { keep, durable, ..change }).await.map(drop)
        }
    }

    /// Forgets a worker that ended; returns whether it was known. Its leases are not
    /// touched.
    fn forget_worker(&self, id: &WorkerId) -> impl Future<Output = Result<bool>> + Send {
        async move {
            let change = DocumentChange::new(WORKERS, id.as_str(), Expects::Anything, None);
            let change = DocumentChange { durable: false, ..change };
            Ok(self.save_document(change).await? == DocumentAnswer::Removed)
        }
    }

    /// All workers heard of lately, by id. A report that cannot be read hides no other.
    fn workers(&self) -> impl Future<Output = Result<Vec<WorkerView>>> + Send {
        async move {
            let mut views = Vec::new();
            let mut after = None;
            loop {
                let list = DocumentList { kind: WORKERS.to_owned(), after, limit: document::PAGE };
                let page = self.documents(list).await?;
                views.extend(page.iter().filter_map(|one| match worker_of(one) {
                    Ok(view) => Some(view),
                    Err(error) => {
                        tracing::warn!(worker = one.name, error = %error.whole(), "passed over");
                        None
                    }
                }));
                after = page.last().map(|last| last.name.clone());
                if page.len() < document::PAGE {
                    return Ok(views);
                }
            }
        }
    }

    /// Publishes the manager's word, if its term is the current one.
    fn publish_assignment(
        &self,
        assignment: Assignment,
    ) -> impl Future<Output = Result<Published>> + Send {
        async move {
            for _ in 0..TRIES {
                let role = self.document(ROLES, MANAGER).await?;
                let current = role.as_ref().map(role_of).transpose()?.map_or(0, |role| role.term);
                let Some(role) = role.filter(|_| assignment.term == current) else {
                    return Ok(Published::StaleTerm { current });
                };
                let body = Some(text(&AssignmentText::new(&assignment))?);
                let word = DocumentChange::new(ASSIGNMENTS, MANAGER, Expects::Anything, body);
                let (kind, name, version) = (role.kind, role.name, role.version);
                let beside = Some(Beside { kind, name, version });
                let saved = self.save_document(DocumentChange { beside, ..word }).await?;
                if let DocumentAnswer::Saved(_) = saved {
                    return Ok(Published::Accepted);
                }
            }
            Err(raced(MANAGER))
        }
    }

    /// The manager's last word.
    fn assignment(&self) -> impl Future<Output = Result<Option<Assignment>>> + Send {
        async move {
            let last = self.document(ASSIGNMENTS, MANAGER).await?;
            last.as_ref().map(assignment_of).transpose()
        }
    }
}

impl<S: Store + ?Sized> ControlPlane for S {}

#[derive(Serialize, Deserialize)]
struct RoleText {
    leader: String,
    term: u64,
    hold: u64,
}

fn role_of(record: &Document) -> Result<Role> {
    let role: RoleText = parse("a role", &record.body)?;
    let hold = Duration::from_micros(role.hold);
    Ok(Role { leader: worker_id(&role.leader), term: role.term, hold })
}

fn role_change(name: &str, expects: Expects, role: &Role) -> Result<DocumentChange> {
    let (leader, hold) = (role.leader.to_string(), micros(role.hold));
    let body = text(&RoleText { leader, term: role.term, hold })?;
    Ok(DocumentChange::new(ROLES, name, expects, Some(body)))
}

/// A worker by what it said last.
///
/// # Errors
///
/// Corrupt, when that is no report.
pub fn worker_of(record: &Document) -> Result<WorkerView> {
    let (report, since) = (report_of(&record.body)?, record.created_at);
    Ok(WorkerView { report, since, silent_for: record.age() })
}

/// What a worker said.
///
/// # Errors
///
/// Corrupt, when that is no report.
pub fn report_of(body: &str) -> Result<WorkerReport> {
    parse::<WorkerText>("a worker's report", body)?.into_report()
}

/// The manager's word as it stands.
///
/// # Errors
///
/// Corrupt, when it is none.
pub fn assignment_of(record: &Document) -> Result<Assignment> {
    let word: AssignmentText = parse("the assignment", &record.body)?;
    word.into_assignment(record.changed_at)
}

/// Whether a document of the control plane can be read; others are nobody's affair here.
///
/// # Errors
///
/// Corrupt, when it cannot.
pub fn check_document(record: &Document) -> Result<()> {
    match &*record.kind {
        ROLES => role_of(record).map(drop),
        WORKERS => worker_of(record).map(drop),
        ASSIGNMENTS => assignment_of(record).map(drop),
        _ => Ok(()),
    }
}

/// The manager's word without the shares of some queues: for who may not know of them.
///
/// # Errors
///
/// Corrupt, when it is none.
pub fn assignment_for(record: Document, may_know: impl Fn(&QueueName) -> bool) -> Result<Document> {
    let mut word = assignment_of(&record)?;
    word.shares.retain(|share| may_know(&share.queue));
    Ok(Document { body: text(&AssignmentText::new(&word))?, ..record })
}

fn raced(role: &str) -> StoreError {
    StoreError::unavailable(format!("others change the role '{role}' again and again"))
}

#[cfg(test)]
mod tests {
    use gristmill_core::Timestamp;

    use super::*;

    #[test]
    fn a_role_is_stored_in_these_words() -> Result<()> {
        let body = r#"{"leader":"w","term":3,"hold":1500000}"#;
        let record = Document {
            kind: ROLES.to_owned(),
            name: "r".to_owned(),
            version: 1,
            body: body.to_owned(),
            created_at: Timestamp::EPOCH,
            changed_at: Timestamp::EPOCH,
            keep: None,
            read_at: Timestamp::EPOCH,
        };
        let role = role_of(&record)?;
        assert_eq!((role.term, role.hold), (3, Duration::from_millis(1_500)));
        let change = role_change("r", Expects::Absent, &role)?;
        assert_eq!(change.body.as_deref(), Some(body));
        Ok(())
    }
}

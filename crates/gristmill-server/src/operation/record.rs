//! An operation as it is written down, and as it is shown.

use gristmill::port::{Action, Document, OperationAnswer, TaskFilter};
use gristmill::{QueueName, StoreError, TaskId, TaskState, Timestamp};
use serde::{Deserialize, Serialize};

/// How an operation fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationState {
    /// It goes on, or waits for its turn.
    Running,
    /// It is to end.
    Stopping,
    /// Everything that was meant has been looked at.
    Done,
    /// It was ended by hand before that.
    Stopped,
    /// It cannot go on.
    Failed,
}

/// What stands before the action of an operation on one shape of errors. A service that
/// knows no shapes ends such an operation as one that it cannot read: passed over, the shape
/// would leave a filter that means far more.
const SHAPED: &str = "shape: ";

/// An operation as it is written down.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    action: String,
    filter: FilterText,
    by: String,
    note: Option<String>,
    /// How it ended.
    pub(super) ended: Option<OperationState>,
    pub(super) stopped_by: Option<String>,
    /// Why it cannot go on.
    pub(super) why: Option<String>,
    /// The last task that was looked at.
    pub(super) after: Option<i64>,
    moved: u64,
    duplicates: u64,
    held: u64,
    others: u64,
    /// When it began, once that is not the document's birth any more.
    began_at: Option<i64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct FilterText {
    queue: Option<String>,
    state: Option<String>,
    key: Option<String>,
    group: Option<String>,
    source: Option<String>,
    error: Option<String>,
    /// Only tasks whose error has this shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shape: Option<String>,
}

/// An operation as it is shown.
#[derive(Debug, Clone, Serialize)]
pub struct OperationView {
    /// Its name.
    pub id: String,
    /// retry, discard, cancel or resolve.
    pub action: String,
    /// How it fares.
    pub state: OperationState,
    /// Which tasks are meant.
    filter: FilterText,
    /// Who wants it.
    pub by: String,
    /// Why.
    pub note: Option<String>,
    /// Tasks that were moved, or asked to cancel.
    pub moved: u64,
    /// Tasks that stay failed because another one holds their key's place.
    pub duplicates: u64,
    /// Tasks that somebody's open transaction held: nothing was done to them.
    pub held: u64,
    /// Tasks that changed before their turn came.
    pub others: u64,
    /// When it began, by the store's clock: what came to match later is left alone.
    pub began_at: String,
    /// When it was last written down.
    pub changed_at: String,
    /// Who had it end.
    pub stopped_by: Option<String>,
    /// Why it failed.
    pub why: Option<String>,
}

impl OperationView {
    /// Which tasks are meant, by the filter's names; nothing means all.
    #[must_use]
    pub fn meant(&self) -> Vec<(&'static str, &str)> {
        let FilterText { queue, state, key, group, source, error, shape } = &self.filter;
        let said = [
            ("queue", queue),
            ("state", state),
            ("key", key),
            ("group", group),
            ("source", source),
            ("error", error),
            ("shape", shape),
        ];
        said.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))).collect()
    }
}

fn wrong(why: impl std::fmt::Display) -> StoreError {
    StoreError::corrupt(format!("an operation: {why}"))
}

impl OperationView {
    /// The queue it is about; without one, all of them.
    #[must_use]
    pub fn queue(&self) -> Option<&str> {
        self.filter.queue.as_deref()
    }
}

impl Record {
    pub(super) fn new(
        action: Action,
        filter: &TaskFilter,
        shape: Option<String>,
        by: String,
        note: Option<String>,
    ) -> Self {
        let before = if shape.is_some() { SHAPED } else { "" };
        Record {
            action: format!("{before}{}", action.as_str()),
            filter: FilterText {
                queue: filter.queue.as_ref().map(ToString::to_string),
                state: filter.state.map(|state| state.as_str().to_owned()),
                key: filter.key.clone(),
                group: filter.group.clone(),
                source: filter.source.clone(),
                error: filter.error_contains.clone(),
                shape,
            },
            by,
            note,
            ended: None,
            stopped_by: None,
            why: None,
            after: None,
            moved: 0,
            duplicates: 0,
            held: 0,
            others: 0,
            began_at: None,
        }
    }

    pub(super) fn read(document: &Document) -> Result<Self, StoreError> {
        serde_json::from_str(&document.body).map_err(wrong)
    }

    pub(super) fn text(&self) -> Result<String, StoreError> {
        serde_json::to_string(self).map_err(wrong)
    }

    /// The step that comes next, as the store takes it.
    pub(super) fn step(
        &self,
        document: &Document,
        limit: usize,
    ) -> Result<gristmill::port::Operation, StoreError> {
        let action = Action::ALL.into_iter().find(|action| action.as_str() == self.action());
        let action =
            action.ok_or_else(|| wrong(format!("there is no action '{}'", self.action)))?;
        let queue = self.filter.queue.as_deref().map(QueueName::new).transpose().map_err(wrong)?;
        let state = self.filter.state.as_deref().map(str::parse::<TaskState>);
        let filter = TaskFilter {
            queue,
            state: state.transpose().map_err(wrong)?,
            key: self.filter.key.clone(),
            group: self.filter.group.clone(),
            source: self.filter.source.clone(),
            error_contains: self.filter.error.clone(),
            stood_at: Some(self.began(document)),
            ..TaskFilter::default()
        };
        let after = self.after.map(TaskId);
        let selection = gristmill::port::Selection::Matching { filter, after };
        let (by, note) = (self.by.clone(), self.note.clone());
        Ok(gristmill::port::Operation {
            action,
            selection,
            limit,
            by,
            note,
            start: gristmill::port::Start::Now,
        })
    }

    /// What is done.
    fn action(&self) -> &str {
        self.action.strip_prefix(SHAPED).unwrap_or(&self.action)
    }

    /// The shape of errors that is meant, if one is.
    pub(super) fn shape(&self) -> Option<&str> {
        self.filter.shape.as_deref().filter(|_| self.action.starts_with(SHAPED))
    }

    /// Counts what a step did.
    pub(super) fn count(&mut self, answers: &[(TaskId, OperationAnswer)]) {
        for (_, answer) in answers {
            *match answer {
                OperationAnswer::Moved | OperationAnswer::CancelRequested => &mut self.moved,
                OperationAnswer::DuplicateOf(_) => &mut self.duplicates,
                OperationAnswer::Held => &mut self.held,
                OperationAnswer::WrongState(_) | OperationAnswer::Gone => &mut self.others,
            } += 1;
        }
    }

    /// The same, over.
    pub(super) fn over(mut self, ended: OperationState, document: &Document) -> Self {
        self.began_at = Some(self.began(document).as_micros());
        self.ended = Some(ended);
        self
    }

    fn began(&self, document: &Document) -> Timestamp {
        self.began_at.map_or(document.created_at, Timestamp::from_micros)
    }

    pub(super) fn view(&self, document: &Document) -> OperationView {
        let state = match (self.ended, &self.stopped_by) {
            (Some(ended), _) => ended,
            (None, Some(_)) => OperationState::Stopping,
            (None, None) => OperationState::Running,
        };
        OperationView {
            id: document.name.clone(),
            action: self.action().to_owned(),
            state,
            filter: self.filter.clone(),
            by: self.by.clone(),
            note: self.note.clone(),
            moved: self.moved,
            duplicates: self.duplicates,
            held: self.held,
            others: self.others,
            began_at: self.began(document).to_string(),
            changed_at: document.changed_at.to_string(),
            stopped_by: self.stopped_by.clone(),
            why: self.why.clone(),
        }
    }
}

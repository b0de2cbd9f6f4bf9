//! Failures, grouped by what went wrong: looked at, retried, discarded.

use std::collections::BTreeMap;
use std::io::BufRead;

use gristmill::port::{Action, ListRequest, Operation, Selection, State, TaskFilter};
use gristmill::{Mill, TaskId, Timestamp, error_shape};

use crate::error::Result;
use crate::out::say;

/// Tasks in a page, and in an operation.
const PAGE: usize = 500;

/// Tasks of a queue that failed in the same way.
#[derive(Debug)]
pub(crate) struct Group {
    /// Names it: the same from look to look.
    pub(crate) mark: String,
    queue: String,
    /// What the first of them says.
    error: String,
    tasks: Vec<TaskId>,
    /// When the first and the last of them failed.
    since: Timestamp,
    last: Timestamp,
}

/// All that failed, the largest group first.
pub(crate) async fn groups(mill: &Mill) -> Result<Vec<Group>> {
    let mut groups: BTreeMap<(String, String), Group> = BTreeMap::new();
    let filter = TaskFilter { state: Some(State::Failed), ..TaskFilter::default() };
    let mut request = ListRequest { filter, limit: PAGE, ..ListRequest::default() };
    loop {
        let page = mill.inspect().list(request.clone()).await?;
        for task in page.tasks {
            let error = task.error.unwrap_or_default();
            let (queue, at) =
                (task.queue.as_str().to_owned(), task.failed_at.unwrap_or(task.created_at));
            let shape = (queue.clone(), error_shape(&error));
            let mark = mark(&shape);
            let group = groups.entry(shape).or_insert_with(|| Group {
                mark,
                queue,
                error,
                tasks: Vec::new(),
                since: at,
                last: at,
            });
            group.tasks.push(task.id);
            (group.since, group.last) = (group.since.min(at), group.last.max(at));
        }
        match page.next {
            Some(next) => request.after = Some(next),
            None => break,
        }
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.tasks.len()));
    Ok(groups)
}

/// Four hexadecimal digits of queue and shape.
fn mark((queue, shape): &(String, String)) -> String {
    let bytes = queue.bytes().chain([0]).chain(shape.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{:04x}", (hash >> 48) ^ (hash & 0xffff))
}

impl Group {
    /// Shows it.
    fn show(&self) -> Result<()> {
        let Group { mark, queue, error, tasks, since, last } = self;
        say!("{mark}  {:>5} of {queue}, from {since} to {last}", tasks.len())?;
        Ok(say!("      {}", error.lines().next().unwrap_or("(no reason)"))?)
    }

    /// Retries or discards all of it; says how many were still there.
    async fn act(&self, mill: &Mill, action: Action) -> Result<()> {
        let mut moved = 0;
        for ids in self.tasks.chunks(PAGE) {
            let operation = Operation {
                action,
                selection: Selection::Ids(ids.to_vec()),
                limit: PAGE,
                by: "item-sync review".to_owned(),
                note: None,
                start: gristmill::port::Start::Now,
            };
            moved += mill.store().operate(operation).await?.moved();
        }
        let verb = if action == Action::Retry { "to run again" } else { "discarded" };
        Ok(say!("{}: {moved} of {} {verb}", self.mark, self.tasks.len())?)
    }
}

/// Lists the groups.
pub(crate) async fn list(mill: &Mill) -> Result<()> {
    let groups = groups(mill).await?;
    for group in &groups {
        group.show()?;
    }
    if groups.is_empty() {
        return Ok(say!("nothing failed")?);
    }
    Ok(say!("\nreview MARK --retry or --discard decides about a group, --ask about all")?)
}

/// Decides about one group.
pub(crate) async fn decide(mill: &Mill, mark: &str, action: Option<Action>) -> Result<()> {
    let groups = groups(mill).await?;
    let group = groups.iter().find(|group| group.mark == mark);
    let group = group.ok_or_else(|| format!("nothing failed with the mark {mark}"))?;
    match action {
        Some(action) => group.act(mill, action).await,
        None => {
            group.show()?;
            let ids: Vec<String> = group.tasks.iter().map(ToString::to_string).collect();
            Ok(say!("      tasks {}", ids.join(" "))?)
        }
    }
}

/// Asks about each group.
pub(crate) async fn ask(mill: &Mill, answers: &mut (dyn BufRead + Send)) -> Result<()> {
    for group in groups(mill).await? {
        group.show()?;
        say!("      r retry, d discard, Enter goes on, q ends")?;
        let mut answer = String::new();
        if answers.read_line(&mut answer)? == 0 {
            break;
        }
        match answer.trim() {
            "r" => group.act(mill, Action::Retry).await?,
            "d" => group.act(mill, Action::Discard).await?,
            "q" => break,
            _ => {}
        }
    }
    Ok(())
}

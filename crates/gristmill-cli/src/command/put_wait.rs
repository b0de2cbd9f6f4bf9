//! `put --wait`: the task's end, and its result on standard output.

use std::io::Write;
use std::time::Duration;

use gristmill::port::{Ending, PutAnswer};
use gristmill::{Mill, TaskId};
use serde::Serialize;

use super::Session;
use super::put::{AnswerJson, answer_json};
use crate::failure::{Exit, Failure};
use crate::output::task::EndingJson;

/// An answer with what came of the task.
#[derive(Serialize)]
struct WaitedJson {
    #[serde(flatten)]
    answer: AnswerJson,
    #[serde(flatten)]
    ending: EndingJson,
}

/// Waits for the end of the task that a put answered, prints what it returned, and ends
/// as its handler did.
pub(super) async fn wait(
    session: &Session,
    mill: &Mill,
    answer: &PutAnswer,
    id: TaskId,
    limit: Duration,
) -> Result<(), Failure> {
    let ending = mill.wait_ending(id, limit).await?;
    if session.output.json {
        let (answer, ending) = (answer_json(answer), EndingJson::of(&ending));
        session.output.value(&WaitedJson { answer, ending })?;
    } else if let Some(value) = ending.value() {
        let mut out = std::io::stdout().lock();
        let line_end: &[u8] = if value.bytes.ends_with(b"\n") { b"" } else { b"\n" };
        out.write_all(&value.bytes)
            .and_then(|()| out.write_all(line_end))
            .and_then(|()| out.flush())
            .map_err(|error| Failure::io("standard output", &error))?;
    }
    match ending {
        Ending::Done { .. } => Ok(()),
        Ending::Failed { error } => {
            let exit = status(&error).map_or(Exit::Wrong, Exit::Handler);
            Err(Failure::new(exit, "failed", format!("task {id} failed: {error}")))
        }
        Ending::Open { .. } => Err(Failure::new(
            Exit::TimeUp,
            "time_up",
            format!(
                "task {id} has not ended yet; 'gristmill show {id}' tells what came of it, up to \
                 ten minutes after its end"
            ),
        )),
        Ending::Cancelled => {
            Err(Failure::new(Exit::Wrong, "cancelled", format!("task {id} was cancelled")))
        }
        Ending::Discarded => Err(Failure::new(
            Exit::Wrong,
            "discarded",
            format!("task {id} had failed and was discarded"),
        )),
        _ => Err(Failure::new(
            Exit::Refused,
            "not_known",
            format!("task {id} ended before anybody wanted to know, and nothing kept its end"),
        )),
    }
}

/// With which status a program ended, as `work` says it last of an error.
fn status(error: &str) -> Option<u8> {
    error.trim_end().lines().last()?.strip_prefix("exit status ")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_status_is_what_its_error_ends_with() {
        assert_eq!(status("exit status 3"), Some(3));
        assert_eq!(status("no such host\nexit status 65"), Some(65));
        assert_eq!(status("exit status 3\nno such host"), None);
        assert_eq!(status("killed by signal 9"), None);
    }
}

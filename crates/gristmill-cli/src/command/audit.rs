//! `audit`: who did what.

use gristmill_server::{Audit as Log, AuditLine};

use super::Session;
use crate::args::AuditArgs;
use crate::failure::Failure;
use crate::output::table;
use crate::store::Missing;

/// Show the log.
#[derive(Debug)]
pub(crate) struct Audit {
    limit: usize,
}

impl Audit {
    pub(crate) fn meant(args: &AuditArgs) -> Result<Self, Failure> {
        let limit = usize::try_from(args.limit);
        Ok(Audit { limit: limit.map_err(|error| Failure::usage(error.to_string()))? })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let log = Log::of(&mill);
        let mut lines: Vec<AuditLine> = Vec::new();
        let read = loop {
            let after = lines.last().map(|line| line.id.clone());
            let left = self.limit - lines.len();
            match log.list(after, left.min(1_000)).await {
                Ok(page) if page.is_empty() => break Ok(()),
                Ok(page) => lines.extend(page),
                Err(error) => break Err(error),
            }
            if lines.len() >= self.limit {
                break Ok(());
            }
        };
        mill.close().await?;
        read?;
        if session.output.json {
            return session.output.value(&lines);
        }
        if lines.is_empty() {
            return session.output.line("nothing was done by operators yet");
        }
        let mut shown =
            table::new(&["at", "who", "action", "target", "queue", ">moved", "via", "note"]);
        let plain = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        for AuditLine { at, deed, .. } in lines {
            let who = match (deed.actor, deed.by) {
                (Some(token), Some(by)) if by != token => format!("{by} (token {token})"),
                (Some(token), _) => format!("token {token}"),
                (None, by) => plain(by),
            };
            shown.add_row([
                at,
                who,
                deed.action,
                plain(deed.target),
                plain(deed.queue),
                plain(deed.moved.map(|moved| moved.to_string())),
                deed.via,
                plain(deed.note),
            ]);
        }
        session.output.line(table::text(&shown))
    }
}

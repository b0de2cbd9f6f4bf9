//! Small records beside tasks.

use gristmill_core::{Document, DocumentAnswer, DocumentChange, DocumentList, Result, Timestamp};
use rusqlite::Row;

use crate::codec;
use crate::db::Db;
use crate::delta::{signed, unsigned};
use crate::sql::{Sql, at, bind};
use crate::write::Write;

impl Write<'_, '_> {
    /// Makes, changes or removes a document, if it stands as the change expects.
    pub(crate) fn save_document(&self, change: &DocumentChange) -> Result<DocumentAnswer> {
        change.check()?;
        let (kind, name) = (change.kind.as_str(), change.name.as_str());
        let standing = get(self.db, kind, name, self.now)?;
        let spared = |heartbeat| self.known.guard.held_back(self.monotonic, heartbeat);
        let beside = match &change.beside {
            Some(one) => get(self.db, &one.kind, &one.name, self.now)?.map(|one| one.version),
            None => None,
        };
        let answer = change.clone().apply(standing.as_ref(), beside, self.now, spared);
        match &answer {
            DocumentAnswer::Saved(document) => {
                self.db.run(
                    Sql::DocumentSave,
                    bind!(DocumentSave {
                        kind,
                        name,
                        version: signed(document.version),
                        body: document.body.as_str(),
                        created_at: document.created_at.as_micros(),
                        changed_at: document.changed_at.as_micros(),
                        keep: document.keep.map(codec::span)
                    }),
                )?;
            }
            DocumentAnswer::Removed => {
                self.db.run(Sql::DocumentRemove, bind!(DocumentRemove { kind, name }))?;
            }
            DocumentAnswer::Changed { .. } | DocumentAnswer::Young { .. } => {}
        }
        Ok(answer)
    }
}

/// One document.
pub(crate) fn get(db: &Db<'_>, kind: &str, name: &str, now: Timestamp) -> Result<Option<Document>> {
    db.one(Sql::DocumentGet, bind!(DocumentGet { kind, name }), |row| read(row, kind, now))
}

/// Documents of a kind, by name.
pub(crate) fn list(db: &Db<'_>, list: &DocumentList, now: Timestamp) -> Result<Vec<Document>> {
    let (kind, after) = (list.kind.as_str(), list.after.as_deref().unwrap_or_default());
    let limit = i64::try_from(list.page()).unwrap_or(i64::MAX);
    db.all(Sql::DocumentList, bind!(DocumentList { kind, after, limit }), |row| {
        read(row, kind, now)
    })
}

/// Both statements name the same columns in the same order.
fn read(row: &Row<'_>, kind: &str, now: Timestamp) -> rusqlite::Result<Document> {
    let keep: Option<i64> = row.get(at!(DocumentList.keep))?;
    Ok(Document {
        kind: kind.to_owned(),
        name: row.get(at!(DocumentList.name))?,
        version: unsigned(row.get(at!(DocumentList.version))?),
        body: row.get(at!(DocumentList.body))?,
        created_at: Timestamp::from_micros(row.get(at!(DocumentList.created_at))?),
        changed_at: Timestamp::from_micros(row.get(at!(DocumentList.changed_at))?),
        keep: keep.map(|keep| std::time::Duration::from_micros(unsigned(keep))),
        read_at: now,
    })
}

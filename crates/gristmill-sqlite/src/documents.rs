//! Small records beside tasks.

use gristmill_core::{Document, DocumentAnswer, DocumentChange, DocumentList, Result, Timestamp};

use crate::db::Db;
use crate::delta::{signed, unsigned};
use crate::sql::{Sql, at, bind};
use crate::write::Write;

impl Write<'_, '_> {
    /// Makes, changes or removes a document, if it stands as the change expects.
    pub(crate) fn save_document(&self, change: &DocumentChange) -> Result<DocumentAnswer> {
        change.check()?;
        let (kind, name) = (change.kind.as_str(), change.name.as_str());
        let standing = get(self.db, kind, name)?;
        let answer = change.clone().apply(standing.as_ref(), self.now);
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
                        changed_at: document.changed_at.as_micros()
                    }),
                )?;
            }
            DocumentAnswer::Removed => {
                self.db.run(Sql::DocumentRemove, bind!(DocumentRemove { kind, name }))?;
            }
            DocumentAnswer::Changed { .. } => {}
        }
        Ok(answer)
    }
}

/// One document.
pub(crate) fn get(db: &Db<'_>, kind: &str, name: &str) -> Result<Option<Document>> {
    db.one(Sql::DocumentGet, bind!(DocumentGet { kind, name }), |row| {
        Ok(Document {
            kind: kind.to_owned(),
            name: name.to_owned(),
            version: unsigned(row.get(at!(DocumentGet.version))?),
            body: row.get(at!(DocumentGet.body))?,
            created_at: Timestamp::from_micros(row.get(at!(DocumentGet.created_at))?),
            changed_at: Timestamp::from_micros(row.get(at!(DocumentGet.changed_at))?),
        })
    })
}

/// Documents of a kind, by name.
pub(crate) fn list(db: &Db<'_>, list: &DocumentList) -> Result<Vec<Document>> {
    let (kind, after) = (list.kind.as_str(), list.after.as_deref().unwrap_or_default());
    let limit = i64::try_from(list.page()).unwrap_or(i64::MAX);
    db.all(Sql::DocumentList, bind!(DocumentList { kind, after, limit }), |row| {
        Ok(Document {
            kind: kind.to_owned(),
            name: row.get(at!(DocumentList.name))?,
            version: unsigned(row.get(at!(DocumentList.version))?),
            body: row.get(at!(DocumentList.body))?,
            created_at: Timestamp::from_micros(row.get(at!(DocumentList.created_at))?),
            changed_at: Timestamp::from_micros(row.get(at!(DocumentList.changed_at))?),
        })
    })
}

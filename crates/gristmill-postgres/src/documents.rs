//! Small records beside tasks.

use gristmill_core::{Document, DocumentAnswer, DocumentChange, DocumentList, Result};

use crate::answer::column;
use crate::codec;
use crate::sql::{Sql, at};
use crate::store::Inner;
use crate::wire::At;

impl Inner {
    /// Makes, changes or removes a document, if it stands as the change expects.
    pub(crate) async fn save_document(&self, change: DocumentChange) -> Result<DocumentAnswer> {
        change.check()?;
        let DocumentChange { kind, name, expects, body } = change;
        let version = expects.map(|version| i64::try_from(version).unwrap_or(i64::MAX));
        let rows = match (&body, version) {
            (Some(body), None) => {
                self.pool.write(Sql::DocumentMake, &[&kind, &name, body, &self.now()]).await?
            }
            (Some(body), Some(version)) => {
                let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
                    [&kind, &name, body, &self.now(), &version];
                self.pool.write(Sql::DocumentChange, &values).await?
            }
            (None, Some(version)) => {
                self.pool.write(Sql::DocumentRemove, &[&kind, &name, &version]).await?
            }
            (None, None) => Vec::new(),
        };
        match (rows.first(), body) {
            (Some(row), Some(body)) => Ok(DocumentAnswer::Saved(Document {
                kind,
                name,
                version: codec::count(column(row, at!(DocumentMake.version))?),
                body,
                created_at: column::<At>(row, at!(DocumentMake.created_at))?.0,
                changed_at: column::<At>(row, at!(DocumentMake.changed_at))?.0,
            })),
            (Some(_), None) => Ok(DocumentAnswer::Removed),
            (None, body) => {
                let current = self.document(&kind, &name).await?.map(|standing| standing.version);
                // What is not there and shall not be there is as it should be.
                Ok(match (body, version, current) {
                    (None, None, None) => DocumentAnswer::Removed,
                    _ => DocumentAnswer::Changed { current },
                })
            }
        }
    }

    /// One document.
    pub(crate) async fn document(&self, kind: &str, name: &str) -> Result<Option<Document>> {
        let rows = self.pool.read(Sql::DocumentGet, &[&kind, &name]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(Document {
            kind: kind.to_owned(),
            name: name.to_owned(),
            version: codec::count(column(row, at!(DocumentGet.version))?),
            body: column(row, at!(DocumentGet.body))?,
            created_at: column::<At>(row, at!(DocumentGet.created_at))?.0,
            changed_at: column::<At>(row, at!(DocumentGet.changed_at))?.0,
        }))
    }

    /// Documents of a kind, by name.
    pub(crate) async fn documents(&self, list: &DocumentList) -> Result<Vec<Document>> {
        let after = list.after.as_deref().unwrap_or_default();
        let limit = i64::try_from(list.page()).unwrap_or(i64::MAX);
        let rows = self.pool.read(Sql::DocumentList, &[&list.kind, &after, &limit]).await?;
        rows.iter()
            .map(|row| {
                Ok(Document {
                    kind: list.kind.clone(),
                    name: column(row, at!(DocumentList.name))?,
                    version: codec::count(column(row, at!(DocumentList.version))?),
                    body: column(row, at!(DocumentList.body))?,
                    created_at: column::<At>(row, at!(DocumentList.created_at))?.0,
                    changed_at: column::<At>(row, at!(DocumentList.changed_at))?.0,
                })
            })
            .collect()
    }
}

//! Small records beside tasks.

use gristmill_core::{
    Clock as _, Document, DocumentAnswer, DocumentChange, DocumentList, Expects, Result, Timestamp,
};
use tokio_postgres::Row;

use crate::answer::column;
use crate::codec;
use crate::deadline::Class;
use crate::pool::Taken;
use crate::sql::{Sql, at};
use crate::store::Inner;
use crate::wire::At;

impl Inner {
    /// Makes, changes or removes a document, if it stands as the change expects.
    pub(crate) async fn save_document(&self, change: DocumentChange) -> Result<DocumentAnswer> {
        change.check()?;
        if matches!(change.expects, Expects::Aged { .. }) || change.beside.is_some() {
            return self.save_locked(change).await;
        }
        let DocumentChange { kind, name, expects, body, keep, .. } = change;
        let keep = keep.map(codec::span);
        let version = match expects {
            Expects::Version(version) => Some(i64::try_from(version).unwrap_or(i64::MAX)),
            _ => None,
        };
        // A jump of the clock is noticed on the way, as by all that tells the time.
        let (now, begun) = (self.now(), self.steady.monotonic());
        self.held();
        let rows = match (&body, expects) {
            (Some(body), Expects::Absent) => {
                self.pool.write(Sql::DocumentMake, &[&kind, &name, body, &now, &keep]).await?
            }
            (Some(body), Expects::Anything) => {
                self.pool.write(Sql::DocumentPut, &[&kind, &name, body, &now, &keep]).await?
            }
            (Some(body), _) => {
                let values: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
                    [&kind, &name, body, &now, &keep, &version];
                self.pool.write(Sql::DocumentChange, &values).await?
            }
            (None, Expects::Absent) => Vec::new(),
            (None, _) => self.pool.write(Sql::DocumentRemove, &[&kind, &name, &version]).await?,
        };
        match (rows.first(), body) {
            (Some(row), Some(body)) => {
                let changed_at = column::<At>(row, at!(DocumentMake.changed_at))?.0;
                self.compare(changed_at, begun);
                Ok(DocumentAnswer::Saved(Document {
                    kind,
                    name,
                    version: codec::count(column(row, at!(DocumentMake.version))?),
                    body,
                    created_at: column::<At>(row, at!(DocumentMake.created_at))?.0,
                    changed_at,
                    keep: keep.map(codec::from_span),
                    read_at: changed_at,
                }))
            }
            (Some(_), None) => Ok(DocumentAnswer::Removed),
            (None, body) => {
                let current = self.document(&kind, &name).await?.map(|standing| standing.version);
                // What is not there and shall not be there is as it should be.
                Ok(match (body, expects, current) {
                    (None, Expects::Absent, None) => DocumentAnswer::Removed,
                    _ => DocumentAnswer::Changed { current },
                })
            }
        }
    }

    /// A change that rests on more than a version: on how long nobody made one, or on
    /// another document. That is looked at while nobody else can change it.
    async fn save_locked(&self, change: DocumentChange) -> Result<DocumentAnswer> {
        let mut connection = self.pool.take(Class::Flow).await?;
        connection.begin().await?;
        let now = self.time(&mut connection).await?;
        let beside = match &change.beside {
            Some(one) => locked(&mut connection, &one.kind, &one.name, now).await?,
            None => None,
        };
        let (kind, name) = (change.kind.clone(), change.name.clone());
        let standing = locked(&mut connection, &kind, &name, now).await?;
        let spared = |heartbeat| self.held_back(heartbeat);
        let beside = beside.map(|one| one.version);
        let answer = change.apply(standing.as_ref(), beside, now, spared);
        match &answer {
            DocumentAnswer::Saved(Document { body, keep, .. }) => {
                let keep = keep.map(codec::span);
                let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
                    [&kind, &name, body, &At(now), &keep];
                connection.run(Sql::DocumentPut, &values).await?;
            }
            DocumentAnswer::Removed => {
                connection.run(Sql::DocumentRemove, &[&kind, &name, &None::<i64>]).await?;
            }
            DocumentAnswer::Changed { .. } | DocumentAnswer::Young { .. } => {
                connection.roll_back().await?;
                return Ok(answer);
            }
        }
        connection.commit().await?;
        Ok(answer)
    }

    /// One document.
    pub(crate) async fn document(&self, kind: &str, name: &str) -> Result<Option<Document>> {
        let rows = self.pool.read(Sql::DocumentGet, &[&kind, &name, &self.now()]).await?;
        rows.first().map(|row| read(row, kind)).transpose()
    }

    /// Documents of a kind, by name.
    pub(crate) async fn documents(&self, list: &DocumentList) -> Result<Vec<Document>> {
        let after = list.after.as_deref().unwrap_or_default();
        let limit = i64::try_from(list.page()).unwrap_or(i64::MAX);
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&list.kind, &after, &limit, &self.now()];
        let rows = self.pool.read(Sql::DocumentList, &values).await?;
        rows.iter().map(|row| read(row, &list.kind)).collect()
    }
}

/// One document, which nobody else changes until the transaction ends.
async fn locked(
    connection: &mut Taken<'_>,
    kind: &str,
    name: &str,
    now: Timestamp,
) -> Result<Option<Document>> {
    let rows = connection.run(Sql::DocumentLock, &[&kind, &name, &At(now)]).await?;
    rows.first().map(|row| read(row, kind)).transpose()
}

/// All that read one name the same columns in the same order.
fn read(row: &Row, kind: &str) -> Result<Document> {
    let keep: Option<i64> = column(row, at!(DocumentGet.keep))?;
    Ok(Document {
        kind: kind.to_owned(),
        name: column(row, at!(DocumentGet.name))?,
        version: codec::count(column(row, at!(DocumentGet.version))?),
        body: column(row, at!(DocumentGet.body))?,
        created_at: column::<At>(row, at!(DocumentGet.created_at))?.0,
        changed_at: column::<At>(row, at!(DocumentGet.changed_at))?.0,
        keep: keep.map(codec::from_span),
        read_at: column::<At>(row, at!(DocumentGet.now))?.0,
    })
}

//! Putting and completing inside the caller's own transaction of sqlx.
//!
//! Both drivers speak PostgreSQL's binary form, so values and answers are
//! written and read by the same code as over tokio-postgres. Only the way to
//! the server is sqlx's.

use std::future::Future;

use bytes::BytesMut;
use gristmill_core::{PutReport, PutRequest, Result, SettleAnswer, Settlement, StoreError};
use sqlx_core::arguments::Arguments;
use sqlx_core::encode::{Encode, IsNull};
use sqlx_core::error::BoxDynError;
use sqlx_core::query::query_with;
use sqlx_core::row::Row;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_core::value::ValueRef;
use sqlx_postgres::types::Oid;
use sqlx_postgres::{
    PgArgumentBuffer, PgArguments, PgDatabaseError, PgRow, PgTypeInfo, PgValueFormat, Postgres,
};
use tokio_postgres::types::{FromSql, IsNull as Nothing, ToSql, Type};

use crate::answer::Answer;
use crate::connection::Texts;
use crate::errors::{Intent, Said};
use crate::inside::Theirs;
use crate::sql::Sql;
use crate::{PostgresStore, WakeGuard};

/// The caller's transaction.
pub type Transaction<'c> = sqlx_core::transaction::Transaction<'c, Postgres>;

impl PostgresStore {
    /// As [`PostgresStore::put_in`], in a transaction of sqlx.
    ///
    /// # Errors
    /// As [`PostgresStore::put_in`].
    pub async fn put_in_sqlx(
        &self,
        transaction: &mut Transaction<'_>,
        request: &PutRequest,
    ) -> Result<(PutReport, WakeGuard)> {
        self.put_inside(transaction, request).await
    }

    /// As [`PostgresStore::complete_in`], in a transaction of sqlx.
    ///
    /// # Errors
    /// As [`PostgresStore::complete_in`].
    pub async fn complete_in_sqlx(
        &self,
        transaction: &mut Transaction<'_>,
        settlements: &[Settlement],
    ) -> Result<(Vec<SettleAnswer>, WakeGuard)> {
        self.complete_inside(transaction, settlements).await
    }
}

impl Theirs for Transaction<'_> {
    type Row = PgRow;

    fn ask(
        &mut self,
        texts: &Texts,
        sql: Sql,
        values: &[&(dyn ToSql + Sync)],
    ) -> impl Future<Output = Result<Vec<PgRow>>> + Send {
        let text = AssertSqlSafe(texts.of(sql).to_owned());
        let arguments = arguments(sql, values);
        async move {
            // Without a name: the caller's connection may go through a pooler.
            let query = query_with(text, arguments?).persistent(false);
            query.fetch_all(&mut **self).await.map_err(fault)
        }
    }
}

fn arguments(sql: Sql, values: &[&(dyn ToSql + Sync)]) -> Result<PgArguments> {
    let mut arguments = PgArguments::default();
    for (value, ty) in values.iter().zip(sql.types()) {
        let argument = Argument { value: *value, ty };
        arguments.add(argument).map_err(|e| StoreError::invalid(e.to_string()))?;
    }
    Ok(arguments)
}

/// A value in the form that both drivers send.
struct Argument<'a> {
    value: &'a (dyn ToSql + Sync),
    ty: &'a Type,
}

impl sqlx_core::types::Type<Postgres> for Argument<'_> {
    /// Not known without the value, whose own word counts.
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(Type::UNKNOWN.oid()))
    }
}

impl<'q> Encode<'q, Postgres> for Argument<'_> {
    fn encode_by_ref(&self, out: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let mut bytes = BytesMut::new();
        match self.value.to_sql_checked(self.ty, &mut bytes)? {
            Nothing::Yes => Ok(IsNull::Yes),
            Nothing::No => {
                out.extend_from_slice(&bytes);
                Ok(IsNull::No)
            }
        }
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(PgTypeInfo::with_oid(Oid(self.ty.oid())))
    }
}

impl Answer for PgRow {
    fn value<'a, T: FromSql<'a>>(&'a self, at: usize) -> Result<T, String> {
        let value = self.try_get_raw(at).map_err(|e| e.to_string())?;
        let oid = value.type_info().oid().map_or(0, |oid| oid.0);
        let ty = Type::from_oid(oid).filter(|ty| T::accepts(ty));
        let ty = ty.ok_or_else(|| format!("column {at} is of the type {oid}"))?;
        let read = match value.is_null() {
            true => T::from_sql_null(&ty),
            false if value.format() == PgValueFormat::Text => {
                return Err(format!("column {at} came as text"));
            }
            false => value.as_bytes().and_then(|bytes| T::from_sql(&ty, bytes)),
        };
        read.map_err(|e| format!("column {at}: {e}"))
    }
}

/// The store's error for sqlx's. Until the caller's commit nothing is written.
fn fault(error: sqlx_core::Error) -> StoreError {
    let Some(theirs) = error.as_database_error() else {
        return StoreError::unavailable("the connection to PostgreSQL failed").caused_by(error);
    };
    let code = theirs.code().unwrap_or_default();
    let (words, constraint) = (theirs.message(), theirs.constraint());
    let said = Said { words, code: &code, constraint };
    let (fault, is_ours) = (said.fault(Intent::Read), said.is_ours());
    // Not sqlx's own error, which says what is below it.
    let said = error.into_database_error().and_then(|e| e.try_downcast::<PgDatabaseError>().ok());
    match said.filter(|_| !is_ours) {
        Some(said) => fault.caused_by(*said),
        None => fault,
    }
}

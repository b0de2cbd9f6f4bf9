//! Values as PostgreSQL's binary protocol has them: tokens and instants.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use gristmill_core::{Timestamp, Token};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// Microseconds from 1970 to 2000, where PostgreSQL's time begins.
const EPOCH: i64 = 946_684_800_000_000;

/// An instant as a `timestamptz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At(pub(crate) Timestamp);

impl ToSql for At {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_i64(self.0.as_micros().saturating_sub(EPOCH));
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TIMESTAMPTZ
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for At {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let micros = i64::from_be_bytes(raw.try_into()?);
        Ok(At(Timestamp::from_micros(micros.saturating_add(EPOCH))))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TIMESTAMPTZ
    }
}

/// A token as a `uuid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Uuid(pub(crate) Token);

impl ToSql for Uuid {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_slice(&self.0.to_bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }

    to_sql_checked!();
}

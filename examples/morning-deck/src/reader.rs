//! Readers: whose sources and briefings they are, and who pays.

use gristmill::sqlite::rusqlite::{Connection, params};
use jiff::tz::TimeZone;

use crate::error::Result;
use crate::smtp;

const READER_ADD: &str = include_str!("sql/reader_add.sql");
const CREDIT_USE: &str = include_str!("sql/credit_use.sql");

/// A reader to be added.
#[derive(Debug, Clone)]
pub struct NewReader<'a> {
    /// Where reports go.
    pub mail: &'a str,
    /// The IANA name of the zone that briefings are read in.
    pub zone: &'a str,
    /// Words that make an item worth reading.
    pub interests: &'a str,
    /// How many items may be enriched.
    pub credits: u32,
}

/// Adds a reader, or finds the one with this address.
///
/// # Errors
/// When the address or the zone cannot be used.
pub fn add(db: &Connection, reader: &NewReader<'_>) -> Result<i64> {
    smtp::address(reader.mail)?;
    zone(reader.zone)?;
    let values = params![reader.mail, reader.zone, reader.interests, reader.credits];
    Ok(db.prepare_cached(READER_ADD)?.query_row(values, |row| row.get(0))?)
}

/// A zone by its name.
pub(crate) fn zone(name: &str) -> Result<TimeZone> {
    TimeZone::get(name).map_err(|_| format!("'{name}' is not a time zone").into())
}

/// Takes one credit from the reader of an item. Returns false when there is
/// none left.
pub(crate) fn use_credit(db: &Connection, item: i64) -> Result<bool> {
    Ok(db.prepare_cached(CREDIT_USE)?.execute(params![item])? > 0)
}

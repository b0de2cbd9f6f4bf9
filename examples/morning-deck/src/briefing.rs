//! Briefings: which are due, and the report each execution makes.

use std::sync::Arc;

use async_trait::async_trait;
use gristmill::Timestamp;
use gristmill::sqlite::rusqlite::{self, Connection, OptionalExtension, Row, params};
use jiff::civil::{Date, Time, Weekday};
use serde::{Deserialize, Serialize};

use crate::deck::Deck;
use crate::error::Result;
use crate::mail::{self, Story};
use crate::reader;
use crate::stage::Stage;
use crate::status::{BRIEFING, Flow};
use crate::timing::Timing;

const BRIEFING_ADD: &str = include_str!("sql/briefing_add.sql");
const BRIEFING_CANDIDATES: &str = include_str!("sql/briefing_candidates.sql");
const BRIEFING_SHOW: &str = include_str!("sql/briefing_show.sql");
const BRIEFING_EXECUTED: &str = include_str!("sql/briefing_executed.sql");
const REPORT_OF_DAY: &str = include_str!("sql/report_of_day.sql");
const REPORT_ADD: &str = include_str!("sql/report_add.sql");
const REPORT_FILL: &str = include_str!("sql/report_fill.sql");
const REPORT_ENTRIES: &str = include_str!("sql/report_entries.sql");
const REPORT_CLOSE: &str = include_str!("sql/report_close.sql");

/// Most items in a report.
pub const TOP: usize = 10;

/// A briefing to be added.
#[derive(Debug, Clone)]
pub struct NewBriefing<'a> {
    /// What its mails are called.
    pub title: &'a str,
    /// When, by the reader's clock.
    pub at: Time,
    /// On which day of the week; daily without.
    pub weekday: Option<Weekday>,
    /// Whether its reports are mailed.
    pub by_mail: bool,
}

/// Adds a briefing of a reader.
pub fn add(
    db: &Connection,
    reader: i64,
    briefing: &NewBriefing<'_>,
    now: Timestamp,
) -> Result<i64> {
    let at = briefing.at.strftime("%H:%M").to_string();
    let weekday = briefing.weekday.map(Weekday::to_monday_one_offset);
    let NewBriefing { title, by_mail, .. } = briefing;
    let values = params![reader, title, at, weekday, by_mail, now.as_micros()];
    Ok(db.prepare_cached(BRIEFING_ADD)?.query_row(values, |row| row.get(0))?)
}

/// Executes a briefing for one of its reader's days.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunBriefing {
    /// The briefing.
    pub row: i64,
    /// The day, as 2026-01-31.
    pub day: String,
}

#[async_trait]
impl Stage for RunBriefing {
    const FLOW: Flow = BRIEFING;
    type Begun = ();
    /// Whether the report was mailed.
    type Found = bool;

    fn row(&self) -> i64 {
        self.row
    }

    fn due(db: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Self>> {
        let mut statement = db.prepare_cached(BRIEFING_CANDIDATES)?;
        let candidates = statement.query_map([], candidate)?.collect::<Result<Vec<_>, _>>()?;
        let mut due = Vec::new();
        for candidate in candidates {
            let row = candidate.id;
            match candidate.due_day(now) {
                Ok(Some(day)) if due.len() < limit => {
                    due.push(RunBriefing { row, day: day.to_string() });
                }
                Ok(_) => {}
                // One reader's bad row must not keep the others from their news.
                Err(error) => tracing::error!(briefing = row, %error, "it can never be due"),
            }
        }
        Ok(due)
    }

    fn begin(&self, db: &Connection, now: Timestamp) -> Result<Option<()>> {
        Ok(BRIEFING.begin(db, self.row, now)?.then_some(()))
    }

    /// Makes the report, which is committed with the execution's time, then
    /// mails it. An attempt after this one finds the report and goes on there.
    async fn work(&self, deck: &Arc<Deck>, (): &()) -> Result<bool> {
        let RunBriefing { row, day } = self.clone();
        let report = deck.transact(move |db, now| compile(db, row, &day, now)).await?;
        let Some(report) = report else { return Ok(false) };
        let Some((to, mailer)) = report.to.as_ref().zip(deck.services.mailer.as_ref()) else {
            return Ok(false);
        };
        mailer.send(&mail::compose(&report, to)).await?;
        Ok(true)
    }

    fn finish(&self, db: &Connection, (): &(), mailed: &bool, now: Timestamp) -> Result<()> {
        let values = params![self.row, self.day, now.as_micros(), mailed];
        db.prepare_cached(REPORT_CLOSE)?.execute(values)?;
        BRIEFING.end(db, self.row, now)?;
        tracing::info!(briefing = self.row, day = self.day, mailed, "executed");
        Ok(())
    }
}

/// A briefing as the database has it.
struct Candidate {
    id: i64,
    zone: String,
    at: String,
    weekday: Option<i8>,
    created_at: i64,
    last_day: Option<String>,
    unfinished: Option<String>,
}

fn candidate(row: &Row<'_>) -> rusqlite::Result<Candidate> {
    Ok(Candidate {
        id: row.get(0)?,
        zone: row.get(1)?,
        at: row.get(2)?,
        weekday: row.get(3)?,
        created_at: row.get(4)?,
        last_day: row.get(5)?,
        unfinished: row.get(6)?,
    })
}

impl Candidate {
    fn due_day(&self, now: Timestamp) -> Result<Option<Date>> {
        if let Some(day) = &self.unfinished {
            return Ok(Some(day.parse()?));
        }
        let timing = Timing {
            zone: reader::zone(&self.zone)?,
            at: self.at.parse()?,
            weekday: self.weekday.map(Weekday::from_monday_one_offset).transpose()?,
            created: jiff::Timestamp::from_microsecond(self.created_at)?,
        };
        let last_day = self.last_day.as_deref().map(str::parse).transpose()?;
        Ok(timing.due_day(jiff::Timestamp::from_microsecond(now.as_micros())?, last_day))
    }
}

/// A report on its way to its reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Its number.
    pub id: i64,
    /// The briefing it is of.
    pub briefing: i64,
    /// The briefing's title.
    pub title: String,
    /// The reader's day it is for.
    pub day: String,
    /// Where it goes, if it is to be mailed.
    pub to: Option<String>,
    /// The best items first.
    pub stories: Vec<Story>,
}

/// Makes the day's report and remembers the execution; or finds the report that
/// an attempt before this one made. None when nothing is left to do for the day.
fn compile(db: &Connection, briefing: i64, day: &str, now: Timestamp) -> Result<Option<Report>> {
    let of_day = || {
        let mut statement = db.prepare_cached(REPORT_OF_DAY)?;
        let values = params![briefing, day];
        statement.query_row(values, |row| Ok((row.get(0)?, row.get(1)?))).optional()
    };
    let id = match of_day()? {
        Some((_, true)) => return Ok(None),
        Some((id, false)) => id,
        None => {
            let values = params![briefing, day, now.as_micros()];
            db.prepare_cached(REPORT_ADD)?.execute(values)?;
            let id = db.last_insert_rowid();
            db.prepare_cached(REPORT_FILL)?.execute(params![id, briefing, TOP as i64])?;
            let values = params![briefing, now.as_micros(), day];
            db.prepare_cached(BRIEFING_EXECUTED)?.execute(values)?;
            id
        }
    };
    let mut statement = db.prepare_cached(REPORT_ENTRIES)?;
    let stories = statement.query_map(params![id], |row| {
        Ok(Story { title: row.get(0)?, url: row.get(1)?, summary: row.get(2)?, score: row.get(3)? })
    })?;
    let stories = stories.collect::<Result<Vec<_>, _>>()?;
    let mut statement = db.prepare_cached(BRIEFING_SHOW)?;
    let (title, by_mail, mail): (String, bool, String) = statement
        .query_row(params![briefing], |row| Ok((row.get(1)?, row.get(2)?, row.get(3)?)))?;
    // Nobody wants to be told that there is nothing to tell.
    let to = (by_mail && !stories.is_empty()).then_some(mail);
    Ok(Some(Report { id, briefing, title, day: day.to_owned(), to, stories }))
}

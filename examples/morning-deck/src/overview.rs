//! How everything stands, for a person: rows by status, queues, readers with their
//! credits and next briefings, and what failed last. As lines, as JSON, as a page.

use std::fmt::Write as _;

use gristmill::sqlite::rusqlite::Connection;
use gristmill::{Mill, Timestamp};
use jiff::civil::{Date, Time, Weekday};
use serde::Serialize;

use crate::error::Result;
use crate::reader;
use crate::status::{BRIEFING, Flow, ITEM, SOURCE};
use crate::timing::Timing;

const READER_LIST: &str = include_str!("sql/reader_list.sql");
const BRIEFING_LIST: &str = include_str!("sql/briefing_list.sql");
const ITEM_NEWEST: &str = include_str!("sql/item_newest.sql");

/// Failures that are shown of each kind.
const FAILURES: u32 = 10;
/// Enriched items that are shown.
const STORIES: u32 = 5;

/// How everything stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// When it was looked.
    pub as_of: String,
    /// The queues, where they can be looked at from here; none before the first run.
    pub queues: Option<Vec<Queue>>,
    /// The three tables.
    pub rows: Vec<Rows>,
    /// The readers.
    pub readers: Vec<Reader>,
    /// The briefings.
    pub briefings: Vec<Briefing>,
    /// What was enriched last.
    pub stories: Vec<Story>,
    /// What failed last.
    pub failures: Vec<Failure>,
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Tasks that wait.
    pub waiting: u64,
    /// Tasks that run.
    pub running: u64,
    /// Tasks that failed.
    pub failed: u64,
    /// Most that may wait.
    pub capacity: Option<u64>,
}

/// A table's rows by status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rows {
    /// The table.
    pub table: &'static str,
    /// How many rows have each status.
    pub by_status: Vec<(&'static str, u64)>,
}

/// A reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reader {
    /// Where reports go.
    pub mail: String,
    /// Where they live.
    pub zone: String,
    /// Items that may still be enriched.
    pub credits: u32,
    /// How many sources.
    pub sources: u32,
}

/// A briefing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Briefing {
    /// Whose.
    pub mail: String,
    /// What it is called.
    pub title: String,
    /// When it comes next by its reader's clock; none when it never can.
    pub next: Option<String>,
}

/// An item that was enriched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Story {
    /// Its title.
    pub title: String,
    /// What it is worth to its reader, up to 100.
    pub score: u8,
    /// In a few words.
    pub summary: String,
    /// Whose.
    pub mail: String,
}

/// A row that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The table.
    pub table: &'static str,
    /// The row.
    pub row: i64,
    /// How often.
    pub attempts: u32,
    /// Why.
    pub error: String,
}

impl Overview {
    /// Looks at the tables.
    ///
    /// # Errors
    /// When the database does not answer.
    pub fn look(db: &Connection, now: Timestamp) -> Result<Self> {
        let flows: [Flow; 3] = [SOURCE, ITEM, BRIEFING];
        let as_of = jiff::Timestamp::from_microsecond(now.as_micros())?;
        let mut overview = Overview {
            as_of: as_of.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
            queues: None,
            rows: Vec::new(),
            readers: Vec::new(),
            briefings: Vec::new(),
            stories: Vec::new(),
            failures: Vec::new(),
        };
        for flow in flows {
            overview.rows.push(Rows { table: flow.table, by_status: flow.count(db)? });
            let failed = flow.errors(db, FAILURES)?.into_iter();
            overview.failures.extend(failed.map(|(row, attempts, error)| Failure {
                table: flow.table,
                row,
                attempts,
                error: error.unwrap_or_default(),
            }));
        }
        let mut readers = db.prepare(READER_LIST)?;
        let readers = readers.query_map([], |row| {
            let (mail, zone) = (row.get(0)?, row.get(1)?);
            Ok(Reader { mail, zone, credits: row.get(2)?, sources: row.get(3)? })
        })?;
        overview.readers = readers.collect::<Result<_, _>>()?;
        let mut stories = db.prepare(ITEM_NEWEST)?;
        let stories = stories.query_map([STORIES], |row| {
            let summary: Option<String> = row.get(2)?;
            let summary = summary.unwrap_or_default();
            Ok(Story { title: row.get(0)?, score: row.get(1)?, summary, mail: row.get(3)? })
        })?;
        overview.stories = stories.collect::<Result<_, _>>()?;
        let mut briefings = db.prepare(BRIEFING_LIST)?;
        let mut rows = briefings.query([])?;
        while let Some(row) = rows.next()? {
            let (at, zone): (String, String) = (row.get(2)?, row.get(3)?);
            let last: Option<String> = row.get(5)?;
            let when = (at.as_str(), row.get(4)?, zone.as_str());
            let next = next(now, when, (last.as_deref(), row.get(6)?)).ok().flatten();
            overview.briefings.push(Briefing { mail: row.get(0)?, title: row.get(1)?, next });
        }
        Ok(overview)
    }

    /// Adds the queues.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn with_queues(mut self, mill: &Mill) -> Result<Self> {
        let queues = mill.inspect().stats().await?.into_iter().map(|queue| Queue {
            name: queue.queue.as_str().to_owned(),
            waiting: queue.pending(),
            running: queue.processing,
            failed: queue.failed,
            capacity: queue.capacity,
        });
        self.queues = Some(queues.collect());
        Ok(self)
    }

    /// As lines.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        for Rows { table, by_status } in &self.rows {
            let _ = write!(text, "{table:<10}");
            for (status, count) in by_status {
                let _ = write!(text, "  {status} {count}");
            }
            text.push('\n');
        }
        text.push('\n');
        match &self.queues {
            None => text += "queues are in the memory of the process that runs\n",
            Some(queues) if queues.is_empty() => text += "queues begin with the first run\n",
            Some(queues) => {
                text += "queue       waiting  running   failed  capacity\n";
                for Queue { name, waiting, running, failed, capacity } in queues {
                    let capacity = capacity.map_or_else(|| "-".to_owned(), |most| most.to_string());
                    let _ = writeln!(
                        text,
                        "{name:<10} {waiting:>8} {running:>8} {failed:>8} {capacity:>9}"
                    );
                }
            }
        }
        text += "\nreader                          credits  sources  zone\n";
        for Reader { mail, zone, credits, sources } in &self.readers {
            let _ = writeln!(text, "{mail:<30} {credits:>8} {sources:>8}  {zone}");
        }
        text += "\nnext briefing              reader                          title\n";
        for Briefing { mail, title, next } in &self.briefings {
            let _ =
                writeln!(text, "{:<26} {mail:<30}  {title}", next.as_deref().unwrap_or("never"));
        }
        if !self.stories.is_empty() {
            let _ = writeln!(text, "\n{:<30} score  title", "enriched last, for");
        }
        for Story { title, score, mail, .. } in &self.stories {
            let _ = writeln!(text, "{mail:<30} {score:>5}  {}", plain(title));
        }
        if !self.failures.is_empty() {
            text += "\nfailed         times  why\n";
        }
        for Failure { table, row, attempts, error } in &self.failures {
            let error = plain(error.lines().next().unwrap_or_default());
            let _ = writeln!(text, "{:<14} {attempts:>5}  {error}", format!("{table} {row}"));
        }
        text
    }
}

/// What others wrote, without what a terminal would obey.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// When a briefing comes next, by its reader's clock.
fn next(
    now: Timestamp,
    (at, weekday, zone): (&str, Option<i8>, &str),
    (last, created): (Option<&str>, i64),
) -> Result<Option<String>> {
    let timing = Timing {
        zone: reader::zone(zone)?,
        at: at.parse::<Time>()?,
        weekday: weekday.map(Weekday::from_monday_one_offset).transpose()?,
        created: jiff::Timestamp::from_microsecond(created)?,
    };
    let now = jiff::Timestamp::from_microsecond(now.as_micros())?;
    let last = last.map(str::parse::<Date>).transpose()?;
    let next = timing.next(now, last);
    Ok(next.map(|next| next.strftime("%a %Y-%m-%d %H:%M %Z").to_string()))
}

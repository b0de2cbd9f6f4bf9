//! What a person does on the command line beside the program that runs: adds readers,
//! sources and briefings, looks how everything stands, and lets what failed begin anew.

use std::path::Path;

use clap::{Args, Subcommand, ValueEnum};
use gristmill::Mill;
use gristmill::port::{Clock, SystemClock};
use gristmill::sqlite::rusqlite::{Connection, OptionalExtension, params};
use jiff::civil::{Time, Weekday};
use morning_deck::briefing::{self, NewBriefing};
use morning_deck::config::{Config, QueuePlace};
use morning_deck::error::Result;
use morning_deck::fetch::Kind;
use morning_deck::overview::Overview;
use morning_deck::reader::{self, NewReader};
use morning_deck::status::{BRIEFING, Flow, ITEM, SOURCE};
use morning_deck::{db, source, url};

use crate::out::say;

const CREDITS_ADD: &str = include_str!("sql/credits_add.sql");
const READER_FIND: &str = include_str!("sql/reader_find.sql");

/// What to add.
#[derive(Debug, Subcommand)]
pub(crate) enum Add {
    /// A reader, who gets mails and pays for enrichments with credits
    Reader {
        /// The mail address
        mail: String,
        /// The time zone that briefings are read in
        #[arg(long, default_value = "UTC", value_name = "ZONE")]
        zone: String,
        /// Words that make an item worth reading
        #[arg(long, default_value = "")]
        interests: String,
        /// How many items may be enriched
        #[arg(long, default_value_t = 100)]
        credits: u32,
    },
    /// A source of a reader: a feed, a page with headlines, or a subreddit's JSON
    Source {
        /// The reader's mail address
        reader: String,
        /// The address
        url: String,
        /// How it is read; told by the address unless said
        #[arg(long, value_enum)]
        kind: Option<SourceKind>,
        /// Minutes between two fetches
        #[arg(long, default_value_t = 60, value_name = "MINUTES")]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=525_600))]
        every: u32,
    },
    /// A briefing of a reader: the best items since the last one
    Briefing {
        /// The reader's mail address
        reader: String,
        /// What its mails are called
        title: String,
        /// The time of day by the reader's clock
        #[arg(long, default_value = "07:00", value_name = "HH:MM", value_parser = time)]
        at: Time,
        /// The day of the week; daily unless said
        #[arg(long, value_enum)]
        weekday: Option<Day>,
        /// Make reports, but mail none
        #[arg(long)]
        no_mail: bool,
    },
    /// Credits for a reader
    Credits {
        /// The reader's mail address
        reader: String,
        /// How many more items may be enriched
        count: u32,
    },
}

/// What to begin anew.
#[derive(Debug, Args)]
pub(crate) struct Anew {
    /// Of which kind; all three unless said
    #[arg(value_enum)]
    kind: Option<Table>,
    /// This row alone
    #[arg(requires = "kind")]
    row: Option<i64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SourceKind {
    Rss,
    Web,
    Reddit,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Table {
    Sources,
    Items,
    Briefings,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Day {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

fn time(text: &str) -> Result<Time, String> {
    let form = text.len() == 5 && text.as_bytes().get(2) == Some(&b':');
    text.parse().ok().filter(|_| form).ok_or_else(|| format!("'{text}' is no time, as 07:30"))
}

/// Adds it to the file. A program that runs finds it with its next look.
pub(crate) fn add(config: &Config, what: &Add) -> Result<()> {
    let (mut db, now) = (open(config)?, SystemClock::default().now());
    let db = db::begin(&mut db)?;
    match what {
        Add::Reader { mail, zone, interests, credits } => {
            if find(&db, mail)?.is_some() {
                return Err(format!("there is a reader {mail}; `add credits` gives credits").into());
            }
            let new = NewReader { mail, zone, interests, credits: *credits };
            let id = reader::add(&db, &new)?;
            db.commit()?;
            say!("reader {id}: {mail}, {credits} credits")?;
        }
        Add::Source { reader, url, kind, every } => {
            url::check(url)?;
            let kind = kind.map_or_else(|| guess(url), SourceKind::kind);
            let reader = known(&db, reader)?;
            let id = source::add(&db, reader, (kind, url), *every, now).map_err(|error| {
                if error.to_string().contains("UNIQUE") {
                    "the reader has it already".into()
                } else {
                    error
                }
            })?;
            db.commit()?;
            say!("source {id}: {url}, read as {}, every {every} minutes", kind.as_str())?;
        }
        Add::Briefing { reader, title, at, weekday, no_mail } => {
            let reader = known(&db, reader)?;
            let weekday = weekday.map(Day::weekday);
            let new = NewBriefing { title, at: *at, weekday, by_mail: !no_mail };
            let id = briefing::add(&db, reader, &new, now)?;
            db.commit()?;
            say!("briefing {id}: {title}, at {}", at.strftime("%H:%M"))?;
        }
        Add::Credits { reader, count } => {
            known(&db, reader)?;
            let credits: u32 =
                db.query_row(CREDITS_ADD, params![reader, count], |row| row.get(0))?;
            db.commit()?;
            say!("{reader} has {credits} credits")?;
        }
    }
    Ok(())
}

/// Says how everything stands.
pub(crate) async fn status(config: &Config, json: bool) -> Result<()> {
    let now = SystemClock::default().now();
    let mut overview = Overview::look(&existing(config)?, now)?;
    if config.queue == QueuePlace::Database {
        let url = format!("sqlite://{}", config.database.display());
        // Readers may be added before the program ran for the first time.
        match Mill::open_existing(&url).await {
            Ok(mill) => {
                overview = overview.with_queues(&mill).await?;
                mill.close().await?;
            }
            Err(_) => overview.queues = Some(Vec::new()),
        }
    }
    if json {
        return Ok(say!("{}", serde_json::to_string_pretty(&overview)?)?);
    }
    Ok(say!("{}", overview.lines().trim_end())?)
}

/// Lets what failed begin anew.
pub(crate) fn retry(config: &Config, what: &Anew) -> Result<()> {
    let (mut db, now) = (existing(config)?, SystemClock::default().now());
    let db = db::begin(&mut db)?;
    let flows: &[Flow] = match what.kind {
        None => &[SOURCE, ITEM, BRIEFING],
        Some(Table::Sources) => &[SOURCE],
        Some(Table::Items) => &[ITEM],
        Some(Table::Briefings) => &[BRIEFING],
    };
    let mut told = Vec::new();
    for flow in flows {
        told.push((flow.table, flow.retry(&db, what.row, now)?));
    }
    db.commit()?;
    if let (Some(row), [(table, 0)]) = (what.row, told.as_slice()) {
        return Err(format!("{table} {row} is not in ERROR").into());
    }
    for (table, count) in told {
        say!("{table}: {count} begin anew with the next look")?;
    }
    Ok(())
}

fn open(config: &Config) -> Result<Connection> {
    let told = |error| format!("{}: {error}", config.database.display());
    Ok(db::open(&config.database).map_err(told)?)
}

/// Only what is there can be looked at: no empty file is made for it.
fn existing(config: &Config) -> Result<Connection> {
    if Path::new(&config.database).exists() {
        return open(config);
    }
    Err(format!("there is no {}", config.database.display()).into())
}

fn find(db: &Connection, mail: &str) -> Result<Option<i64>> {
    Ok(db.query_row(READER_FIND, [mail], |row| row.get(0)).optional()?)
}

fn known(db: &Connection, mail: &str) -> Result<i64> {
    let found = find(db, mail)?;
    found.ok_or_else(|| format!("there is no reader {mail}: add one first").into())
}

/// How a source is read, by its address.
fn guess(url: &str) -> Kind {
    let path = url.split(['?', '#']).next().unwrap_or(url).to_lowercase();
    if path.contains("/r/") && path.ends_with(".json") {
        return Kind::Reddit;
    }
    let page = [".html", ".htm", ".php"].iter().any(|end| path.ends_with(end));
    if page { Kind::Web } else { Kind::Rss }
}

impl SourceKind {
    const fn kind(self) -> Kind {
        match self {
            SourceKind::Rss => Kind::Rss,
            SourceKind::Web => Kind::Web,
            SourceKind::Reddit => Kind::Reddit,
        }
    }
}

impl Day {
    const fn weekday(self) -> Weekday {
        match self {
            Day::Monday => Weekday::Monday,
            Day::Tuesday => Weekday::Tuesday,
            Day::Wednesday => Weekday::Wednesday,
            Day::Thursday => Weekday::Thursday,
            Day::Friday => Weekday::Friday,
            Day::Saturday => Weekday::Saturday,
            Day::Sunday => Weekday::Sunday,
        }
    }
}

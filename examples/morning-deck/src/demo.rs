//! The demonstration: local servers with news that keep coming, and two readers
//! who want them.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use gristmill::Timestamp;
use gristmill::port::Clock;
use gristmill::sqlite::rusqlite::{Connection, params};
use jiff::tz::TimeZone;

use crate::briefing::{self, NewBriefing};
use crate::deck::Deck;
use crate::error::Result;
use crate::fetch::Kind;
use crate::local::{MailServer, WebServer};
use crate::reader::{self, NewReader};
use crate::source;

/// The demonstration's configuration.
pub const CONFIG: &str = include_str!("../demo.yaml");

const REFRESH_ALWAYS: &str = include_str!("sql/demo_refresh.sql");
const MOVE_SOURCES: &str = include_str!("sql/demo_move.sql");
const MOVE_ITEMS: &str = include_str!("sql/demo_move_items.sql");
const STORIES_SEEN: &str = include_str!("sql/demo_seen.sql");
const SAMPLE_STORIES: &str = include_str!("sql/demo_stories.sql");

/// How often there is news.
const NEWS_EVERY: Duration = Duration::from_secs(3);

/// News there is from the start.
const FIRST_NEWS: usize = 2;

/// The headlines, one after the other, and then again.
const HEADLINES: &[(&str, &str)] = &[
    ("Night trains return to the coast", "The first night trains leave in June."),
    ("A compiler learns to explain itself", "Its errors now come with a diff."),
    ("Harbour ferry runs on batteries", "The ferry crosses in twelve minutes."),
    ("Library opens on Sundays", "Readers had asked for it for years."),
    ("Old queue, new trick", "A database can be a queue, engineers say."),
];

/// The demonstration's servers.
#[derive(Debug)]
pub struct Servers {
    /// Feeds, pages, and the search index.
    pub web: WebServer,
    /// Where mails end.
    pub mail: MailServer,
}

impl Servers {
    /// Starts them with a little news.
    ///
    /// # Errors
    /// When there is no port to listen on.
    pub async fn start() -> Result<Self> {
        let servers = Servers { web: WebServer::start().await?, mail: MailServer::start().await? };
        servers.publish(FIRST_NEWS);
        Ok(servers)
    }

    /// The first so many pieces of news, on all three kinds of source.
    fn publish(&self, count: usize) {
        let stories: Vec<(usize, &str, &str)> = HEADLINES
            .iter()
            .cycle()
            .take(count)
            .enumerate()
            .map(|(number, (title, text))| (number, *title, *text))
            .collect();
        let (mut rss, mut page, mut posts) = (String::new(), String::new(), Vec::new());
        for (number, title, text) in &stories {
            self.web.set(&format!("/story/{number}"), 200, format!("<h1>{title}</h1><p>{text}"));
            match number % 3 {
                0 => {
                    rss += &format!(
                        "<item><guid>story-{number}</guid><title>{title}</title>\
                         <link>/story/{number}</link><description>{text}</description></item>"
                    );
                }
                1 => {
                    page += &format!(
                        "<article><a href=\"/story/{number}\">{title}</a><p>{text}</p></article>"
                    );
                }
                _ => posts.push(serde_json::json!({"kind": "t3", "data": {
                    "name": format!("t3_{number}"), "title": title, "selftext": text,
                    "permalink": format!("/story/{number}"),
                }})),
            }
        }
        page += "<article><a href=\"/about\">About this page</a></article>";
        self.web.set("/feed.xml", 200, format!("<rss><channel>{rss}</channel></rss>"));
        self.web.set("/news.html", 200, page);
        let listing = serde_json::json!({"data": {"children": posts}}).to_string();
        self.web.set("/r/queues/new.json", 200, listing);
    }

    /// Keeps the news coming after these, and shows the mails that arrive.
    pub async fn keep_going(&self, mut published: usize) {
        let mut mails = self.mail.watch();
        let mut ticks = tokio::time::interval(NEWS_EVERY);
        let mut shown = 0;
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    published += 1;
                    self.publish(published);
                }
                changed = mails.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    for mail in mails.borrow_and_update().iter().skip(shown) {
                        shown += 1;
                        let subject = mail.header("Subject").unwrap_or("");
                        let text = mail.text.trim_end().replace('\n', "\n    | ");
                        let mail = &mail.to;
                        // Who closed the output wants to see no more.
                        let _ = writeln!(
                            std::io::stdout(),
                            "    | mail to {mail}: {subject}\n    |\n    | {text}"
                        );
                    }
                }
            }
        }
    }
}

/// Two readers. The first one's briefing is due at once, over what was enriched
/// before; the second one's with the next full minute. A file that has them goes
/// on where it was, with its sources on the new servers. Returns how many pieces
/// of news are known.
///
/// # Errors
/// When the database does not take them.
pub async fn seed(deck: &Arc<Deck>, servers: &Servers) -> Result<usize> {
    let base = servers.web.url("");
    let clock = deck.clock();
    deck.transact(move |db, now| {
        let moved = db.execute(MOVE_SOURCES, params![base])?;
        if moved == 0 {
            add_readers(db, &base, &*clock, now)?;
        }
        db.execute(MOVE_ITEMS, params![base])?;
        let seen: i64 = db.query_row(STORIES_SEEN, [], |row| row.get(0))?;
        Ok(usize::try_from(seen).unwrap_or_default().max(FIRST_NEWS))
    })
    .await
}

fn add_readers(db: &Connection, base: &str, clock: &dyn Clock, now: Timestamp) -> Result<()> {
    let readers =
        [("ada@example.com", "Europe/Athens", 40), ("bob@example.com", "America/Denver", 20)];
    for (mail, zone, credits) in readers {
        let interests = "trains, queue, ferry, compiler";
        let reader = reader::add(db, &NewReader { mail, zone, interests, credits })?;
        for (kind, path) in [
            (Kind::Rss, "/feed.xml"),
            (Kind::Web, "/news.html"),
            (Kind::Reddit, "/r/queues/new.json"),
            (Kind::Rss, "/gone.xml"),
        ] {
            source::add(db, reader, (kind, &format!("{base}{path}")), 1, now)?;
        }
        let (title, at, weekday) = if mail.starts_with("ada") {
            ("Ada's morning deck", jiff::civil::Time::midnight(), None)
        } else {
            let soon = next_minute(clock, zone)?;
            ("Bob's weekly deck", soon.time(), Some(soon.weekday()))
        };
        briefing::add(db, reader, &NewBriefing { title, at, weekday, by_mail: true }, now)?;
    }
    // What Ada's sources brought before, so that there is a briefing at once.
    db.execute(SAMPLE_STORIES, params![now.as_micros()])?;
    Ok(())
}

fn next_minute(clock: &dyn Clock, zone: &str) -> Result<jiff::Zoned> {
    let now = jiff::Timestamp::from_microsecond(clock.now().as_micros())?;
    let zoned = now.to_zoned(TimeZone::get(zone)?);
    Ok(zoned
        .checked_add(jiff::Span::new().minutes(1))?
        .round(jiff::ZonedRound::new().smallest(jiff::Unit::Minute).mode(jiff::RoundMode::Trunc))?)
}

/// Sources are due every few seconds instead of every minute, which is the
/// shortest interval a reader can ask for.
///
/// # Errors
/// When the database does not answer.
pub async fn hurry(deck: &Arc<Deck>) -> Result<()> {
    let mut ticks = tokio::time::interval(NEWS_EVERY);
    loop {
        ticks.tick().await;
        deck.transact(|db, _| Ok(db.execute(REFRESH_ALWAYS, params![])?)).await?;
    }
}

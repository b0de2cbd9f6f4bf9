//! A deck with everything around it: servers, a service, a clock that the test
//! moves, and eyes on the database from outside.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use gristmill::port::memory::{MemoryOptions, MemoryStore};
use gristmill::port::{
    Action, Clock, ListRequest, ManualClock, NewTask, Operation, QueueStats, Selection, State,
    Task, TaskFilter,
};
use gristmill::schedule::Scheduler;
use gristmill::sqlite::rusqlite::Connection;
use gristmill::sqlite::{Options, SqliteStore};
use gristmill::worker::WorkReport;
use gristmill::{Mill, QueueName, Timestamp};
use morning_deck::app::App;
use morning_deck::briefing::{self, NewBriefing};
use morning_deck::config::{Config, QueuePlace};
use morning_deck::deck::Services;
use morning_deck::fetch::Kind;
use morning_deck::http::Client;
use morning_deck::local::{MailServer, WebServer};
use morning_deck::reader::{self, NewReader};
use morning_deck::search::Search;
use morning_deck::smtp::Mailer;
use morning_deck::source;
use tempfile::TempDir;

use crate::program::{Running, program};
use crate::test_ai::TestAi;

pub(crate) const BOTH: [QueuePlace; 2] = [QueuePlace::Database, QueuePlace::Memory];
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
/// Far more than anything here takes: only a hang meets it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A test's own deck.
pub(crate) struct Desk {
    pub(crate) app: App,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) web: WebServer,
    pub(crate) mail: MailServer,
    pub(crate) ai: Arc<TestAi>,
    scheduler: Scheduler,
    folder: TempDir,
}

impl Desk {
    /// With the defaults, at the start of 2026.
    pub(crate) async fn new(place: QueuePlace) -> Self {
        Self::with(place, "").await
    }

    /// With these properties.
    pub(crate) async fn with(place: QueuePlace, properties: &str) -> Self {
        let mut config =
            Config::read(Some(("test.properties", properties)), []).expect("properties");
        let folder = tempfile::tempdir().expect("a folder");
        config.queue = place;
        config.database = folder.path().join("deck.db");
        let clock = Arc::new(ManualClock::default());
        let web = WebServer::start().await.expect("a web server");
        let mail = MailServer::start().await.expect("a mail server");
        let ai = Arc::new(TestAi::new());
        let app = open(config, &clock, &web, mail.port(), &ai).await;
        let scheduler = started(&app).await;
        Desk { app, clock, web, mail, ai, scheduler, folder }
    }

    /// The process ends and another begins: what was in memory is gone.
    pub(crate) async fn restart(&mut self) {
        self.app.close().await.expect("closed");
        let config = self.app.config.clone();
        self.app = open(config, &self.clock, &self.web, self.mail.port(), &self.ai).await;
        self.scheduler = started(&self.app).await;
    }

    /// From here on this sees every task before it is put.
    pub(crate) async fn on_put(&mut self, hook: fn(&str, &mut NewTask)) {
        self.app.mill = self.app.mill.clone().on_put(hook);
        self.scheduler = started(&self.app).await;
    }

    pub(crate) fn is_memory(&self) -> bool {
        self.app.config.queue == QueuePlace::Memory
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("deck.db")
    }

    /// The program as a process of its own, on this desk's file and servers and
    /// on the machine's time. It looks for sources every second.
    pub(crate) fn process(&self) -> Running {
        let config = self.folder.path().join("deck.properties");
        let place = if self.is_memory() { "memory" } else { "database" };
        let properties = format!(
            "application.queue={place}\napplication.database={}\n\
             application.jobs.feed-scheduling.interval=1000\napplication.mail.enabled=false\n",
            self.database().display()
        );
        std::fs::write(&config, properties).expect("a file");
        let mut program = program(&["run", "--config", &config.display().to_string()]);
        program.stdout(Stdio::null()).stderr(Stdio::null());
        Running(program.spawn().expect("the program starts"))
    }

    // ------------------------------------------------------------------ time

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Moves the clock to an instant ahead.
    pub(crate) fn at(&self, instant: &str) {
        let instant: Timestamp = instant.parse().expect("an instant");
        assert!(instant >= self.now(), "time does not go back");
        self.clock.advance(instant.since(self.now()));
    }

    /// The schedulers look at what is due by the clock, which stays.
    pub(crate) async fn look(&mut self) -> Option<Timestamp> {
        self.scheduler.run_due().await.expect("the store answers")
    }

    /// A minute passes, and the schedulers look.
    pub(crate) async fn tick(&mut self) {
        self.clock.advance(MINUTE);
        self.look().await;
    }

    /// The workers do all there is to do.
    pub(crate) async fn work(&self) -> WorkReport {
        let mut total = WorkReport::default();
        for worker in self.app.workers() {
            let worked = worker.drain(true).run(std::future::pending());
            let report = tokio::time::timeout(PATIENCE, worked).await.expect("no hang");
            let report = report.expect("the store answers");
            total.done += report.done + report.gone;
            total.not_done += report.not_done;
        }
        total
    }

    /// A minute passes, what is due is found, and all of it is done.
    pub(crate) async fn cycle(&mut self) -> WorkReport {
        self.tick().await;
        self.work().await
    }

    // ------------------------------------------------------------------ rows

    pub(crate) async fn reader(&self, mail: &str, zone: &str, credits: u32) -> i64 {
        let (mail, zone) = (mail.to_owned(), zone.to_owned());
        let add = self.app.deck.transact(move |db, _| {
            reader::add(db, &NewReader { mail: &mail, zone: &zone, interests: "", credits })
        });
        add.await.expect("a reader")
    }

    pub(crate) async fn source(&self, reader: i64, kind: Kind, path: &str, minutes: u32) -> i64 {
        let url = self.web.url(path);
        let add = self
            .app
            .deck
            .transact(move |db, now| source::add(db, reader, (kind, &url), minutes, now));
        add.await.expect("a source")
    }

    /// A reader with an RSS source that was imported before, so that what comes
    /// next is new. Returns reader and source.
    pub(crate) async fn imported(&mut self, credits: u32) -> (i64, i64) {
        let reader = self.reader("ada@example.com", "UTC", credits.max(1)).await;
        let source = self.source(reader, Kind::Rss, "/feed.xml", 10_000).await;
        self.feed(&[]);
        self.cycle().await;
        assert_eq!(self.status("source", source), "IDLE");
        self.sql().execute("UPDATE reader SET credits = ?1", [credits]).expect("credits");
        (reader, source)
    }

    /// What `/feed.xml` has from now on: stories by their number.
    pub(crate) fn feed(&self, stories: &[u32]) {
        self.web.set("/feed.xml", 200, rss(stories));
    }

    /// Stories come in as new items.
    pub(crate) async fn news(&mut self, stories: &[u32]) {
        self.feed(stories);
        self.execute("UPDATE source SET fetched_at = 0 WHERE fetched_at IS NOT NULL");
        self.tick().await;
        self.work_one::<morning_deck::source::FetchSource>().await;
    }

    /// Only this stage's worker does what there is to do.
    pub(crate) async fn work_one<S>(&self) -> WorkReport
    where
        S: morning_deck::stage::Stage + gristmill::TaskType,
    {
        let serving = &self.app.config.fetching;
        let worker = morning_deck::queue::worker::<S>(&self.app, serving).drain(true);
        let worked = tokio::time::timeout(PATIENCE, worker.run(std::future::pending())).await;
        worked.expect("no hang").expect("the store answers")
    }

    pub(crate) async fn briefing(&self, reader: i64, at: &str, weekday: Option<i8>) -> i64 {
        let weekday = weekday
            .map(|day| jiff::civil::Weekday::from_monday_one_offset(day).expect("a weekday"));
        let at = at.parse().expect("a time");
        let add = self.app.deck.transact(move |db, now| {
            let new = NewBriefing { title: "The deck", at, weekday, by_mail: true };
            briefing::add(db, reader, &new, now)
        });
        add.await.expect("a briefing")
    }

    /// A connection like that of any other program: it sees what is committed.
    pub(crate) fn sql(&self) -> Connection {
        let db = Connection::open(self.database()).expect("a database");
        db.busy_timeout(PATIENCE).expect("a timeout");
        db
    }

    pub(crate) fn execute(&self, sql: &str) {
        self.sql().execute_batch(sql).expect(sql);
    }

    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.sql().query_row(sql, [], |row| row.get(0)).expect(sql)
    }

    pub(crate) fn texts(&self, sql: &str) -> Vec<String> {
        let db = self.sql();
        let mut statement = db.prepare(sql).expect(sql);
        let rows = statement.query_map([], |row| row.get(0)).expect(sql);
        rows.collect::<Result<_, _>>().expect(sql)
    }

    pub(crate) fn status(&self, table: &str, row: i64) -> String {
        self.texts(&format!("SELECT status FROM {table} WHERE id = {row}")).remove(0)
    }

    /// The statuses of a table's rows, in order.
    pub(crate) fn statuses(&self, table: &str) -> Vec<String> {
        self.texts(&format!("SELECT status FROM {table} ORDER BY id"))
    }

    pub(crate) fn credits(&self) -> i64 {
        self.number("SELECT sum(credits) FROM reader")
    }

    // ----------------------------------------------------------------- queues

    pub(crate) async fn stats(&self, queue: &str) -> QueueStats {
        self.app.mill.inspect().queue(queue).await.expect(queue)
    }

    /// How many tasks wait: the queue's size.
    pub(crate) async fn size(&self, queue: &str) -> u64 {
        self.stats(queue).await.pending()
    }

    pub(crate) async fn failed(&self, queue: &str) -> Vec<Task> {
        self.app.mill.inspect().failed(Some(queue), 100).await.expect("a list")
    }

    pub(crate) async fn waiting(&self, queue: &str) -> Vec<Task> {
        let queue = Some(QueueName::new(queue).expect("a name"));
        let filter = TaskFilter { queue, state: Some(State::Pending), ..TaskFilter::default() };
        let request = ListRequest { filter, limit: 1_000, ..ListRequest::default() };
        self.app.mill.inspect().list(request).await.expect("a list").tasks
    }

    /// An operator retries a queue's failed tasks.
    pub(crate) async fn retry(&self, queue: &str) {
        let queue = Some(QueueName::new(queue).expect("a name"));
        let filter = TaskFilter { queue, state: Some(State::Failed), ..TaskFilter::default() };
        let selection = Selection::Matching { filter, after: None };
        let by = "the test".to_owned();
        let operation = Operation {
            action: Action::Retry,
            selection,
            limit: 100,
            by,
            note: None,
            start: gristmill::port::Start::Now,
        };
        self.app.mill.store().operate(operation).await.expect("retried");
    }
}

impl Desk {
    /// Adds a source that another server has.
    pub(crate) async fn source_at(&self, reader: i64, url: &str) -> i64 {
        let url = url.to_owned();
        let add = self
            .app
            .deck
            .transact(move |db, now| source::add(db, reader, (Kind::Rss, &url), 10_000, now));
        add.await.expect("a source")
    }
}

async fn open(
    config: Config,
    clock: &Arc<ManualClock>,
    web: &WebServer,
    mail_port: u16,
    ai: &Arc<TestAi>,
) -> App {
    let mill = match config.queue {
        QueuePlace::Database => {
            let options = Options { clock: clock.clone(), ..Options::default() };
            let store = SqliteStore::open(&config.database, options).expect("a store");
            Mill::over_sqlite(Arc::new(store))
        }
        QueuePlace::Memory => {
            let options = MemoryOptions { clock: clock.clone(), ..MemoryOptions::default() };
            Mill::over(Arc::new(MemoryStore::new(options)))
        }
    };
    let mailer = config.mail.clone().map(|mut server| {
        if server.port == 25 {
            (server.host, server.port) = ("127.0.0.1".to_owned(), mail_port);
        }
        let mailer = Mailer::new(server, &config.mail_from, config.authorities.as_deref());
        mailer.expect("a mailer").within(PATIENCE)
    });
    let search = config.search.as_ref().map(|_| Search {
        url: web.url(""),
        client: Client::default(),
        key: Some("a key".to_owned()),
    });
    let client = config.authorities.as_deref().map(Client::with_authorities);
    let client = client.transpose().expect("authorities").unwrap_or_default();
    let services = Services { web: client, ai: ai.clone(), mailer, search };
    App::over(mill, config, clock.clone(), services).await.expect("the application")
}

async fn started(app: &App) -> Scheduler {
    let mut scheduler = app.scheduler();
    scheduler.run_due().await.expect("the store answers");
    scheduler
}

/// A feed of stories, whose pages are not there.
pub(crate) fn rss(stories: &[u32]) -> String {
    let items: String = stories
        .iter()
        .map(|n| {
            format!(
                "<item><guid>s{n}</guid><title>Story {n}</title><link>/s/{n}</link>\
                 <description>About {n}.</description></item>"
            )
        })
        .collect();
    format!("<rss><channel>{items}</channel></rss>")
}

/// Gives what must not come this time: no signal can say that nothing happens.
pub(crate) async fn nothing_comes_within(time: Duration) {
    tokio::time::sleep(time).await;
}

//! A folder with a database, the program that works on it, and eyes on both.

use std::fmt::Write as _;
use std::future::Future;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use gristmill::port::{
    Action, ClaimRequest, ClaimedTask, ListRequest, Operation, OperationReport, Outcome,
    QueueStats, Selection, SettleAnswer, Settlement, State, Task, TaskFilter, Token, WorkerId,
};
use gristmill::sqlite::rusqlite::Connection;
use gristmill::{Mill, QueueName};
use tempfile::TempDir;

/// Far more than anything here takes: only a hang meets it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A test's own folder.
pub(crate) struct Shop {
    folder: TempDir,
}

/// What a run of the program left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) ok: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Shop {
    pub(crate) fn new() -> Self {
        Shop { folder: tempfile::tempdir().expect("a folder") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program, not yet started.
    pub(crate) fn program(&self, args: &[&str]) -> Command {
        let mut program = Command::new(env!("CARGO_BIN_EXE_item-sync"));
        program.args(args);
        self.here(program)
    }

    /// A command that runs in this folder.
    pub(crate) fn here(&self, mut command: Command) -> Command {
        command.current_dir(self.folder.path()).env_remove("ITEM_SYNC_DB");
        command.env_remove("ITEM_SYNC_RETRIES");
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        ran(self.program(args))
    }

    /// As `run`, and it must succeed.
    pub(crate) fn ok(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert!(ran.ok, "{args:?}: {ran:?}");
        ran
    }

    /// Starts the program and leaves it running.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let mut program = self.program(args);
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(Some(program.spawn().expect("the program starts")))
    }

    /// Writes a file of items: id and price in cents.
    pub(crate) fn file(&self, name: &str, items: &[(i64, u32)]) {
        std::fs::write(self.path(name), json(items)).expect("a file");
    }

    /// Syncs these items.
    pub(crate) fn sync(&self, items: &[(i64, u32)]) -> Ran {
        self.file("feed.json", items);
        self.ok(&["sync", "feed.json", "--debug"])
    }

    /// A connection like that of any other program.
    pub(crate) fn sql(&self) -> Connection {
        let db = Connection::open(self.path("items.db")).expect("a database");
        db.busy_timeout(PATIENCE).expect("a timeout");
        db
    }

    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.sql().query_row(sql, [], |row| row.get(0)).expect(sql)
    }

    /// Rows of a table, 0 while it is not there.
    pub(crate) fn rows(&self, table: &str) -> i64 {
        let count = format!("SELECT count(*) FROM {table}");
        self.sql().query_row(&count, [], |row| row.get(0)).unwrap_or(0)
    }

    /// The queue from outside, through the library.
    pub(crate) fn mill<T, F: Future<Output = T>>(&self, look: impl FnOnce(Mill) -> F) -> T {
        let url = format!("sqlite://{}", self.path("items.db").display());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let mill = Mill::open(&url).await.expect("a store");
            let seen = look(mill.clone()).await;
            mill.close().await.expect("closed");
            seen
        })
    }

    pub(crate) fn stats(&self, queue: &str) -> QueueStats {
        self.mill(|mill| async move { mill.inspect().queue(queue).await.expect(queue) })
    }

    /// Pending, processing, failed.
    pub(crate) fn standing(&self, queue: &str) -> (u64, u64, u64) {
        let stats = self.stats(queue);
        (stats.pending(), stats.processing, stats.failed)
    }

    /// A queue's tasks, oldest first.
    pub(crate) fn tasks(&self, queue: &str, state: State) -> Vec<Task> {
        let queue = Some(QueueName::new(queue).expect("a name"));
        let filter = TaskFilter { queue, state: Some(state), ..TaskFilter::default() };
        let request = ListRequest { filter, limit: 1_000, ..ListRequest::default() };
        self.mill(|mill| async move { mill.inspect().list(request).await.expect("a list").tasks })
    }

    /// What an operator does to a queue's failed tasks.
    pub(crate) fn operate(&self, action: Action, queue: &str) -> OperationReport {
        let queue = Some(QueueName::new(queue).expect("a name"));
        let filter = TaskFilter { queue, state: Some(State::Failed), ..TaskFilter::default() };
        let selection = Selection::Matching { filter, after: None };
        let by = "the test".to_owned();
        let operation = Operation {
            action,
            selection,
            limit: 1_000,
            by,
            note: None,
            start: gristmill::port::Start::Now,
        };
        self.mill(|mill| async move { mill.store().operate(operation).await.expect("operated") })
    }

    /// Claims a queue's due tasks as a worker would, lets something happen, and
    /// then settles them all.
    pub(crate) fn while_claimed(
        &self,
        queue: &str,
        outcome: Outcome,
        meanwhile: impl FnOnce(&[ClaimedTask]),
    ) -> Vec<SettleAnswer> {
        let token = Token::random().expect("a token");
        let request = ClaimRequest {
            queue: QueueName::new(queue).expect("a name"),
            max: 10,
            lease: None,
            worker: WorkerId::random().expect("an id"),
            source: None,
            token,
        };
        let claim = self.mill(|mill| async move { mill.store().claim(request).await });
        let claimed = claim.expect("a claim").tasks;
        meanwhile(&claimed);
        let settle = |task: &ClaimedTask| Settlement::new(task.id, token, outcome.clone());
        let settlements = claimed.iter().map(settle).collect();
        let answers = self.mill(|mill| async move { mill.store().settle(settlements).await });
        answers.expect("settled")
    }

    /// The notices of new items so far.
    pub(crate) fn notices(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.path("new-items.log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

/// Items as the program reads them.
pub(crate) fn json(items: &[(i64, u32)]) -> String {
    let mut text = String::from("[");
    for (at, (id, price)) in items.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        write!(text, r#"{comma}{{"id":{id},"name":"Item {id}","price_cents":{price}}}"#)
            .expect("written");
    }
    text + "]"
}

/// Runs a command to its end.
pub(crate) fn ran(mut command: Command) -> Ran {
    let output = command.output().expect("the program runs");
    Ran {
        ok: output.status.success(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Looks until it is so. What is awaited is another process's doing, so there
/// is nothing to be woken by.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A running program, killed at the latest with the test.
pub(crate) struct Running(Option<Child>);

impl Running {
    fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("it runs")
    }

    pub(crate) fn id(&mut self) -> u32 {
        self.child().id()
    }

    /// Gives the program more to read.
    pub(crate) fn feed(&mut self, text: &str) {
        let stdin: &mut ChildStdin = self.child().stdin.as_mut().expect("an input");
        stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()).expect("it reads");
    }

    /// Waits for its end; its input ends now.
    pub(crate) fn end(mut self) -> Ran {
        let output = self.0.take().expect("it runs").wait_with_output().expect("its end");
        Ran {
            ok: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// `kill -9`, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.child().kill().expect("killed");
        self.child().wait().expect("gone");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

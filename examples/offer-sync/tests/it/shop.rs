//! A folder with offers and tasks, the program that works on them, and eyes on
//! both.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use gristmill::Mill;
use gristmill::sqlite::rusqlite::Connection;
use tempfile::TempDir;

/// The stores every promise is kept on.
pub(crate) const STORES: [&str; 2] = ["sqlite://tasks.db", "files://spool"];

pub(crate) struct Shop {
    folder: TempDir,
    store: &'static str,
}

/// A slice that a batch took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) number: Option<u32>,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) began: i64,
    pub(crate) ended: i64,
}

impl Shop {
    pub(crate) fn new(store: &'static str) -> Self {
        Shop::with(store, 1000)
    }

    /// With so many offers.
    pub(crate) fn with(store: &'static str, offers: u32) -> Self {
        let shop = Shop { folder: tempfile::tempdir().unwrap(), store };
        shop.run(&["seed", "--offers", &offers.to_string(), "--processes", "300"]);
        shop
    }

    /// The store's URL, as another program would say it.
    pub(crate) fn url(&self) -> String {
        let (scheme, path) = self.store.split_once("://").unwrap();
        format!("{scheme}://{}", self.folder.path().join(path).display())
    }

    /// Does something with the store, as another program would.
    pub(crate) fn mill<T>(&self, work: impl AsyncFnOnce(&Mill) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let mill = Mill::open(&self.url()).await.unwrap();
            let done = work(&mill).await;
            mill.close().await.unwrap();
            done
        })
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_offer-sync"));
        command.args(args).args(["--store", self.store]).current_dir(self.folder.path());
        command.env_remove("OFFER_SYNC_STORE").stdin(Stdio::null());
        command
    }

    /// Runs what must succeed; returns what it said.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        let out = self.command(args).output().unwrap();
        let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{args:?}: {stderr}");
        String::from_utf8(out.stdout).unwrap()
    }

    /// Starts it and leaves it running.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let mut child = self.command(args).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines }
    }

    /// Drains until nothing is left, not even of a worker that was killed.
    pub(crate) fn drain(&self, args: &[&str]) {
        loop {
            self.run(&[&["work", "--drain"], args].concat());
            let shown = self.run(&["show"]);
            let mut queues = shown.lines().take_while(|line| !line.is_empty());
            if queues.all(|line| line.contains(" 0 ready, 0 running")) {
                return;
            }
        }
    }

    /// Starts several at once and waits for all.
    pub(crate) fn together(&self, count: usize, args: &[&str]) {
        let children: Vec<_> =
            (0..count).map(|_| self.command(args).stdout(Stdio::null()).spawn().unwrap()).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
    }

    /// One number from the shop's tables.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.tables().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    fn tables(&self) -> Connection {
        Connection::open(self.folder.path().join("offers.db")).unwrap()
    }

    /// What the batches of a kind took, in the order in which they began.
    pub(crate) fn taken(&self, kind: &str) -> Vec<Taken> {
        let tables = self.tables();
        let sql = "SELECT number, first, last, began, ended FROM slice WHERE kind = ?1 \
                   ORDER BY began, rowid";
        let mut statement = tables.prepare(sql).unwrap();
        let rows = statement.query_map([kind], |row| {
            Ok(Taken {
                number: row.get(0)?,
                first: row.get::<_, Option<i64>>(1)?.unwrap_or(0),
                last: row.get::<_, Option<i64>>(2)?.unwrap_or(-1),
                began: row.get(3)?,
                ended: row.get(4)?,
            })
        });
        rows.unwrap().map(Result::unwrap).collect()
    }
}

/// A running program, killed at the latest with the test.
pub(crate) struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// Reads what it says, up to the line number `count` of those that have this in them.
    pub(crate) fn says(&mut self, what: &str, count: usize) {
        let mut lines = self.lines.by_ref().map(Result::unwrap).filter(|line| line.contains(what));
        assert!(lines.nth(count - 1).is_some(), "it ended before it said {what} {count} times");
    }

    /// Stops it as a machine that hangs does, or lets it go on: `-STOP`, `-CONT`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// `kill -9`, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

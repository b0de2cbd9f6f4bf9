//! A database with Gristmill's schema and the example's tables, and its
//! programs run on it.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use gristmill::Mill;
use gristmill_pgserver::{Database, Error, Server};

pub(crate) struct Kitchen {
    database: Database,
}

impl Kitchen {
    /// With ingredients and the queue, and no line yet.
    pub(crate) fn new() -> Self {
        let server = Server::shared().expect("PostgreSQL");
        let database = server.database("kitchen", prepare).expect("a database");
        Kitchen { database }
    }

    /// Takes lines of a recipe in.
    pub(crate) fn put(&self, source: &str, lines: &[&str]) -> String {
        let csv: String = lines.iter().map(|line| format!("recipe,\"{line}\"\n")).collect();
        let file = format!("{}.csv", self.database.name());
        let path = std::env::temp_dir().join(file);
        std::fs::write(&path, csv).unwrap();
        let said = finish(
            psql(&self.database.url())
                .args(["-v", &format!("source={source}"), "-f", "sql/put.sql"])
                .stdin(std::fs::File::open(&path).unwrap()),
        );
        std::fs::remove_file(path).unwrap();
        said
    }

    /// One of the example's programs, ready to run.
    pub(crate) fn program(&self, words: &[&str]) -> Command {
        let (name, arguments) = words.split_first().unwrap();
        let mut command = Command::new(here().join(name));
        command.args(arguments).env("DATABASE_URL", self.database.url()).stdin(Stdio::null());
        command.env_remove("LEASE_SECONDS").env_remove("QUEUE_RETRY_FAILED");
        command
    }

    /// Runs a program to its end and answers what it said.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        finish(&mut self.program(words))
    }

    /// Starts a program that a test will kill, and waits until it holds tasks.
    pub(crate) fn start_and_hold(&self, words: &[&str], tasks: u32) -> Child {
        let mut command = self.program(words);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        while self.ask("SELECT processing FROM gristmill.stats()") != tasks.to_string() {}
        child
    }

    /// What the database answers.
    pub(crate) fn ask(&self, sql: &str) -> String {
        self.database.psql(sql).unwrap()
    }

    pub(crate) fn url(&self) -> String {
        self.database.url()
    }

    /// Makes the roles that SQL clients are granted.
    pub(crate) fn make_roles(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(gristmill::postgres::make_roles(&self.url())).unwrap();
    }

    /// The database's URL for another login.
    pub(crate) fn tcp_url_of(&self, login: &str, password: &str) -> String {
        let url = self.database.tcp_url();
        let (_, host) = url.split_once('@').expect("with a password");
        format!("postgres://{login}:{password}@{host}")
    }
}

fn prepare(url: &str) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::new(error.to_string()))?;
    runtime
        .block_on(async { Mill::open(url).await?.close().await })
        .map_err(|error| Error::new(error.to_string()))?;
    for file in ["sql/schema.sql", "data/ingredients.sql", "sql/queue.sql"] {
        finish(psql(url).args(["-f", file]));
    }
    Ok(())
}

fn psql(url: &str) -> Command {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url]);
    psql.current_dir(here()).stdin(Stdio::null());
    psql
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn finish(command: &mut Command) -> String {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{program} cannot be run ({error}): is it installed?"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {errors}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

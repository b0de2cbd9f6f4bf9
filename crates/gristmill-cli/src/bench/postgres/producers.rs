//! Producers that are processes of their own: this program again, told to put.
//!
//! Each opens the store, puts a few to warm up and says so; when all have, each is
//! told to begin and says when it has put its share.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Instant;

use gristmill::{Mill, PostgresUrl};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::super::load::{BenchError, Grain, Keyed, put_by};
use super::super::rate;
use super::at;
use super::put::WARM_UP;

/// One of them, and how to talk to it.
struct Producer {
    child: Child,
    told: ChildStdin,
    says: Lines<BufReader<ChildStdout>>,
}

impl Producer {
    /// Starts one that will put so many tasks.
    fn start(url: &PostgresUrl, tasks: usize) -> Result<Self, BenchError> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "--put-when-told", &tasks.to_string()]);
        // Not among the words, which everybody on the machine can read.
        command.env("GRISTMILL_STORE", at(url));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let gone = || std::io::Error::other("it has no input or output");
        let told = child.stdin.take().ok_or_else(gone)?;
        let says = BufReader::new(child.stdout.take().ok_or_else(gone)?).lines();
        Ok(Producer { child, told, says })
    }

    /// Waits until it has said a line.
    async fn heard(&mut self) -> Result<(), BenchError> {
        match self.says.next_line().await? {
            Some(_) => Ok(()),
            None => Err(std::io::Error::other("it ended early").into()),
        }
    }
}

/// So many tasks by so many processes; the rate of all of them.
pub(super) async fn put(
    url: &PostgresUrl,
    processes: usize,
    tasks: usize,
) -> Result<f64, BenchError> {
    let each = (tasks / processes).max(1);
    let mut all = Vec::new();
    for _ in 0..processes {
        all.push(Producer::start(url, each)?);
    }
    for producer in &mut all {
        producer.heard().await?;
    }
    let start = Instant::now();
    for producer in &mut all {
        producer.told.write_all(b"\n").await?;
    }
    for producer in &mut all {
        producer.heard().await?;
    }
    let took = start.elapsed();
    for mut producer in all {
        drop(producer.told);
        producer.child.wait().await?;
    }
    Ok(rate(each * processes, took))
}

/// What such a process does. It has nothing else to do while it is not told.
pub(in super::super) async fn put_when_told(store: &str, tasks: usize) -> Result<(), BenchError> {
    let mill = Mill::open(store).await?;
    for number in 0..WARM_UP {
        mill.put(Grain::new(number).keyed(Keyed::No)).await?;
    }
    let mut told = String::new();
    say("ready")?;
    std::io::stdin().read_line(&mut told)?;
    put_by(1, &mill, tasks).await?;
    say("put")?;
    std::io::stdin().read_line(&mut told)?;
    Ok(mill.close().await?)
}

fn say(word: &str) -> Result<(), BenchError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{word}")?;
    Ok(out.flush()?)
}

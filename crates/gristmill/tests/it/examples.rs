//! The examples that need somebody else, run as a reader would run them: one with a
//! database, one with an HTTP client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// What every worker's metrics begin with, whether a cycle has ended or not.
const SERIES: &str = "# TYPE queue_job_processor_cycle_duration_seconds histogram";

/// An example as cargo has built it beside this test; none where only the test was built.
fn example(name: &str) -> Option<PathBuf> {
    let built = std::env::current_exe().unwrap();
    let path = built.parent().unwrap().parent().unwrap().join("examples").join(name);
    if !path.exists() {
        eprintln!("NOT RUN: the example {name} was not built");
        return None;
    }
    Some(path)
}

#[tokio::test]
async fn the_example_on_postgres_puts_one_task_for_two_changes() {
    let Some(example) = example("postgres") else { return };
    let database = crate::postgres::database().await;
    let output = Command::new(example).env("DATABASE_URL", database.url()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 4, "{said}");
    assert!(lines[0].starts_with("100: Enqueued"), "{said}");
    assert!(lines[1].starts_with("120: Duplicate"), "{said}");
    assert_eq!(lines[2..], ["item 1 has a new price", "1 done"], "{said}");
}

/// A program that is not left running where a test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An answer of the example's application.
fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_example_with_metrics_counts_what_it_was_sent() {
    let Some(example) = example("metrics") else { return };
    let started = Command::new(example).arg("127.0.0.1:0").stdout(Stdio::piped()).spawn();
    let mut running = Running(started.unwrap());
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let opening = lines.next().unwrap();
    let address = opening.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let mail = r#"{"to":"ada"}"#;
    let put = ask(
        address,
        &format!(
            "POST /mail HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{mail}",
            mail.len()
        ),
    );
    assert!(put.starts_with("HTTP/1.1 200"), "{put}");
    assert_eq!(lines.next().as_deref(), Some("to ada"));
    let told = ask(
        address,
        &format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"),
    );
    assert!(told.starts_with("HTTP/1.1 200") && told.contains(SERIES), "{told}");
    kill_process(Pid::from_child(&running.0), Signal::INT).unwrap();
    assert_eq!(lines.next().as_deref(), Some("1 done"));
    assert!(running.0.wait().unwrap().success());
}

/// What an example says that needs nobody else.
fn said(example: PathBuf) -> Vec<String> {
    let output = Command::new(example).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said.lines().map(str::to_owned).collect()
}

#[test]
fn the_import_that_is_killed_three_times_goes_on_where_it_was() {
    let Some(example) = example("checkpoint") else { return };
    let said = said(example);
    let begins: Vec<usize> = said
        .iter()
        .filter_map(|line| line.strip_prefix("attempt ")?.split_once(" begins at row "))
        .enumerate()
        .map(|(nth, (attempt, row))| {
            assert_eq!(attempt.parse(), Ok(nth + 1), "{said:?}");
            row.parse().unwrap()
        })
        .collect();
    assert_eq!((begins.len(), begins[0]), (4, 0), "{said:?}");
    // Ten rows of each were seen, and kept before they were told of.
    assert!(begins.windows(2).all(|two| two[1] >= two[0] + 10), "{said:?}");
    assert!(begins[3] < 40, "the last one had something to do: {said:?}");
}

#[test]
fn the_clients_with_a_rate_take_as_long_as_it_says() {
    let Some(example) = example("rate") else { return };
    let said = said(example);
    let (calls, took) = said.last().unwrap().split_once(" calls in ").unwrap();
    let took: f64 = took.strip_suffix(" s").unwrap().parse().unwrap();
    assert_eq!(calls, "200", "{said:?}");
    // Five at once and fifty a second; of the first one it may have been heard late.
    assert!(took > 3.0, "{said:?}");
}

//! What a person does beside the program: adds, looks, lets begin anew; and the page.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use gristmill::sqlite::rusqlite::Connection;
use morning_deck::local::WebServer;

use crate::desk::rss;
use crate::program::{Running, program};

fn said(folder: &Path, words: &[&str]) -> (bool, String, String) {
    let output = program(words).current_dir(folder).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn ok(folder: &Path, words: &[&str]) -> String {
    let (ok, said, errors) = said(folder, words);
    assert!(ok, "{words:?}: {errors}");
    said
}

/// Starts the program with these properties, and returns it with its log.
fn run(folder: &Path, properties: &str) -> (Running, impl Iterator<Item = String>) {
    let common = "application.jobs.feed-scheduling.interval=1000\n\
                  application.jobs.processing.interval=1000\napplication.mail.enabled=false\n";
    std::fs::write(folder.join("deck.properties"), format!("{common}{properties}")).unwrap();
    let mut program = program(&["run", "--config", "deck.properties"]);
    program.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = Running(program.spawn().unwrap());
    let lines = BufReader::new(running.0.stderr.take().unwrap()).lines();
    (running, lines.map_while(Result::ok))
}

fn sql(folder: &Path) -> Connection {
    let db = Connection::open(folder.join("morning-deck.db")).unwrap();
    db.busy_timeout(Duration::from_secs(60)).unwrap();
    db
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_added_is_fetched_shown_and_begun_anew() {
    let (folder, web) = (tempfile::tempdir().unwrap(), WebServer::start().await.unwrap());
    let at = folder.path();
    web.set("/feed.xml", 200, rss(&[1, 2]));
    let (good, gone) = (web.url("/feed.xml"), web.url("/gone.xml"));
    ok(at, &["add", "reader", "ada@example.com", "--zone", "Europe/Athens", "--credits", "7"]);
    let added = ok(at, &["add", "source", "ada@example.com", &good, "--every", "5"]);
    assert!(added.contains("read as rss, every 5 minutes"), "{added}");
    ok(at, &["add", "source", "ada@example.com", &gone]);
    let weekly = ["--at", "06:30", "--weekday", "monday"];
    ok(at, &[&["add", "briefing", "ada@example.com", "The deck"], &weekly[..]].concat());
    assert_eq!(
        ok(at, &["add", "credits", "ada@example.com", "3"]),
        "ada@example.com has 10 credits\n"
    );
    for (words, why) in [
        (&["add", "reader", "ada@example.com"][..], "there is a reader"),
        (&["add", "reader", "nobody"], "not a mail address"),
        (&["add", "reader", "bob@example.com", "--zone", "Mars/North"], "not a time zone"),
        (&["add", "source", "ada@example.com", &good], "has it already"),
        (&["add", "source", "bob@example.com", &good], "there is no reader"),
        (&["add", "source", "ada@example.com", "ftp://a/"], "cannot be fetched"),
        (&["add", "briefing", "ada@example.com", "x", "--at", "7"], "is no time"),
    ] {
        let (ok, _, errors) = said(at, words);
        assert!(!ok && errors.contains(why), "{words:?}: {errors}");
    }

    let before = ok(at, &["status"]);
    assert!(before.contains("\nqueues begin with the first run\n"), "{before}");

    let (running, log) = run(at, "application.status.listen=127.0.0.1:0\n");
    let mut log = log.skip_while(|line| !line.contains("the status page"));
    let page = log.next().unwrap();
    let address = page.split_once("http://").unwrap().1.split('/').next().unwrap().to_owned();
    assert!(log.any(|line| line.contains("fetched") && line.contains("new=2")));
    // In whatever order the two were fetched.
    let failed = || {
        let sql = sql(at);
        sql.query_row("SELECT status FROM source WHERE id = 2", [], |row| row.get::<_, String>(0))
    };
    while failed().unwrap() != "ERROR" {
        tokio::task::yield_now().await;
    }

    let shown = ok(at, &["status"]);
    for part in [
        "news_item   NEW 0  PENDING 0  PROCESSING 0  DONE 2  ERROR 0",
        "source      IDLE 1  QUEUED 0  FETCHING 0  ERROR 1",
        "fetch ",
        "ada@example.com                      10        2  Europe/Athens",
        " 06:30 EET",
        "source 2           1  ",
        "the server answered 404",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    let json: serde_json::Value = serde_json::from_str(&ok(at, &["status", "--json"])).unwrap();
    assert_eq!(json["readers"][0]["credits"], 10);
    assert_eq!(json["queues"].as_array().unwrap().len(), 3);

    let ask = |path: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let html = ask("/");
    for part in ["HTTP/1.1 200", "<h1>Morning deck</h1>", "<b>1</b> IDLE", "<td>ada@example.com"] {
        assert!(html.contains(part), "{part} is not in\n{html}");
    }
    assert!(
        ask("/status.json").contains("\"credits\": 10") && ask("/x").starts_with("HTTP/1.1 404")
    );

    // It is there now: the next look fetches it.
    web.set("/gone.xml", 200, rss(&[3]));
    assert_eq!(ok(at, &["retry", "sources", "2"]), "source: 1 begin anew with the next look\n");
    assert!(log.any(|line| line.contains("fetched source=2")));
    let (ok, _, errors) = said(at, &["retry", "sources", "2"]);
    assert!(!ok && errors.contains("source 2 is not in ERROR"), "{errors}");
    drop(running);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_memory_a_killed_process_s_rows_begin_anew_at_the_next_start() {
    let (folder, web) = (tempfile::tempdir().unwrap(), WebServer::start().await.unwrap());
    let at = folder.path();
    web.set("/feed.xml", 200, rss(&[1]));
    ok(at, &["add", "reader", "ada@example.com"]);
    ok(at, &["add", "source", "ada@example.com", &web.url("/feed.xml")]);
    web.set_open(false);
    let (mut running, _log) = run(at, "application.queue=memory\n");
    web.asked("/feed.xml", 1).await;
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    let status = "SELECT status FROM source";
    let status = |folder| sql(folder).query_row(status, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(status(at), "FETCHING");
    assert!(ok(at, &["status", "--config", "deck.properties"]).contains("in the memory"));
    web.set_open(true);
    // Recovery looks every five minutes, at rows that are ten minutes old.
    let (running, mut log) = run(at, "application.queue=memory\n");
    assert!(log.any(|line| line.contains("begin anew")));
    assert!(log.any(|line| line.contains("fetched source=1")));
    while status(at) != "IDLE" {
        tokio::task::yield_now().await;
    }
    drop(running);
}

#[test]
fn whoever_reads_only_the_first_line_gets_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    ok(folder.path(), &["add", "reader", "ada@example.com"]);
    for words in [&["status"][..], &["properties"], &["add", "reader", "bob@example.com"]] {
        let mut program = program(words);
        program.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = program.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !errors.contains("panic"), "{words:?}: {errors}");
    }
}

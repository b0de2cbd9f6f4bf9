//! `top` in a terminal: over a store and over HTTP, wide and narrow, with keys that act.

use crate::http::started;
use crate::place::{Place, eventually};
use crate::terminal::Terminal;

/// Two queues, one of them with a task that failed.
fn ground() -> Place {
    let place = Place::with(&[&["emails", "max_attempts=1"], &["reports"]]);
    place.ok(&["put", "emails", r#"{"to":"ada"}"#]);
    place.ok(&["work", "emails", "--exec", "echo no route to host >&2; false", "--drain"]);
    place.ok(&["put", "reports", "1"]);
    place.ok(&["put", "reports", "2"]);
    place
}

/// The line of a queue.
fn row(top: &Terminal, queue: &str) -> Vec<String> {
    let lines = top.lines();
    let line = lines.iter().find(|line| line.trim_start().starts_with(queue));
    line.map(|line| line.split_whitespace().map(str::to_owned).collect()).unwrap_or_default()
}

/// Looks, pauses a queue, retries what failed, and leaves.
fn looks_and_acts(there: &Place, top: &mut Terminal) {
    top.until("2 queues");
    top.until("no route to host");
    assert_eq!(row(top, "emails")[1..6], ["0", "0", "0", "0", "1"], "{:#?}", top.lines());
    assert_eq!(row(top, "reports")[1..6], ["2", "0", "0", "0", "0"], "{:#?}", top.lines());
    top.press("j");
    top.press("p");
    top.until("reports is paused");
    eventually("it is paused", || there.stats("reports")["paused"] == true);
    top.press("k");
    top.press("r");
    top.until("retry 1 failed task of emails? y/n");
    top.press("y");
    top.until("1 task retried");
    eventually("it waits again", || there.stats("emails")["ready"] == 1);
    top.press("?");
    top.until("look no more, or again");
}

#[test]
fn top_looks_and_acts_over_a_store() {
    let place = ground();
    let mut top = Terminal::of(&place.command(&["top", "--every", "200ms"]), 120, 40);
    looks_and_acts(&place, &mut top);
    top.press("q");
    assert_eq!(top.end(), 0);
}

#[test]
fn top_looks_and_acts_over_http() {
    let (there, here) = (ground(), Place::new());
    let (_serve, address) = started(&there, &["serve"]);
    let url = format!("http://{address}");
    let command = here.command(&["--store", &url, "top", "--every", "200ms"]);
    let mut top = Terminal::of(&command, 120, 40);
    looks_and_acts(&there, &mut top);
    assert!(!here.path("gristmill.db").exists(), "nothing was made here");
    top.press("q");
    assert_eq!(top.end(), 0);
}

#[test]
fn top_keeps_what_matters_in_a_narrow_terminal() {
    let place = ground();
    // A pane of a split screen: one table, and of it the columns that say most.
    let mut top = Terminal::of(&place.command(&["top", "--every", "200ms"]), 36, 12);
    top.until("2 queues");
    assert_eq!(row(&top, "queue"), ["queue", "ready", "failed"]);
    assert_eq!(row(&top, "emails"), ["emails", "0", "1"], "{:#?}", top.lines());
    top.press("\t\t");
    top.until("1 task failed");
    top.until("no route");
    top.press("q");
    assert_eq!(top.end(), 0);
    // So small that nothing fits: it draws what it can, and leaves when asked to.
    let mut top = Terminal::of(&place.command(&["top", "--every", "200ms"]), 8, 2);
    top.until("gristmi");
    top.press("q");
    assert_eq!(top.end(), 0);
}

#[test]
fn top_is_without_colour_where_none_is_wanted() {
    let place = ground();
    let colours = |sent: &str| {
        let orders = sent.split("\u{1b}[").skip(1);
        let styles = orders.filter_map(|order| order.split_once('m')).map(|(style, _)| style);
        let plain = |style: &&str| style.bytes().all(|c| c.is_ascii_digit() || c == b';');
        styles
            .filter(plain)
            .filter(|style| style.starts_with("38;") || style.starts_with("48;"))
            .count()
    };
    for (wanted, coloured) in [("", true), ("1", false)] {
        let mut command = place.command(&["top", "--every", "200ms"]);
        command.env("NO_COLOR", wanted);
        let mut top = Terminal::of(&command, 100, 30);
        // A failed task is red, and that nothing is looked at any more is yellow.
        top.until("no route to host");
        top.press(" ");
        top.until("frozen");
        let seen = colours(&top.sent());
        assert_eq!(seen > 0, coloured, "NO_COLOR={wanted}: {seen}: {:?}", top.sent());
        top.press("q");
        assert_eq!(top.end(), 0);
    }
}

#[test]
fn top_says_what_to_do_without_a_terminal() {
    let answer = ground().run(&["top"]);
    assert_eq!(answer.code, 2, "{answer:?}");
    assert!(answer.stderr.contains("stats --watch"), "{answer:?}");
}

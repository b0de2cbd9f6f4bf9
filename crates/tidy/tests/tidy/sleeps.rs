//! Tests wait for signals and own the clock. The few that sleep are listed here, each
//! with its reason, so that sleeping does not grow back.

use crate::lexer::{Token, code};
use crate::repo::{File, Finding, Repo, expect};

/// Why a test sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// Between two looks at what cannot be heard, until it holds or a deadline passed.
    Looks,
    /// It paces a load or picks the moment of a kill: nothing is waited for.
    Drives,
    /// The time itself is what is tested, or no signal can be had.
    Fixed,
}

/// Files of tests that sleep: how often, why, and what would be lost without.
const SLEEPS: &[(&str, Why, usize, &str)] = &[
    (
        "crates/gristmill-cli/tests/it/clock_jumps.rs",
        Why::Drives,
        1,
        "for how long the clock is wrong",
    ),
    (
        "crates/gristmill-cli/tests/it/orphan.rs",
        Why::Looks,
        1,
        "as cron does, until the task is back",
    ),
    (
        "crates/gristmill-cli/tests/it/overview_cost.rs",
        Why::Drives,
        4,
        "puts ten tasks a second, and looks as often as a page does, for as long as is measured",
    ),
    ("crates/gristmill-cli/tests/it/place.rs", Why::Looks, 1, "`eventually`"),
    ("crates/gristmill-cli/tests/it/secret.rs", Why::Looks, 1, "whether a process has ended"),
    ("crates/gristmill-cli/tests/it/stuck_log.rs", Why::Looks, 1, "whether it has ended"),
    (
        "crates/gristmill-cli/tests/it/stuck_log.rs",
        Why::Fixed,
        1,
        "two signals within a moment are one, and the log that tells of the first is full",
    ),
    (
        "crates/gristmill-conformance/src/behaviour/rule_05_order.rs",
        Why::Fixed,
        1,
        "how long a process may pass by what another put is told in the machine's time",
    ),
    (
        "crates/gristmill-conformance/src/bin/gristmill-judge/nemesis.rs",
        Why::Drives,
        1,
        "when to strike",
    ),
    (
        "crates/gristmill-conformance/src/bin/gristmill-judge/server.rs",
        Why::Drives,
        1,
        "a server that stands still",
    ),
    ("crates/gristmill-conformance/src/bin/gristmill-judge/site.rs", Why::Looks, 1, "who has left"),
    (
        "crates/gristmill-conformance/src/bin/gristmill-judge/store.rs",
        Why::Looks,
        1,
        "asks again until it opens",
    ),
    ("crates/gristmill-conformance/src/crash/child.rs", Why::Looks, 3, "asks again until answered"),
    ("crates/gristmill-conformance/src/crash/faults.rs", Why::Looks, 1, "whether it was hit"),
    ("crates/gristmill-conformance/src/crash/nemesis.rs", Why::Drives, 1, "when to kill"),
    ("crates/gristmill-conformance/src/crash/nemesis.rs", Why::Looks, 1, "what was written"),
    ("crates/gristmill-conformance/src/crash/power.rs", Why::Drives, 1, "when to cut"),
    (
        "crates/gristmill-conformance/src/judge/client/drain.rs",
        Why::Looks,
        2,
        "asks again until nothing is left",
    ),
    ("crates/gristmill-conformance/src/judge/client/mod.rs", Why::Drives, 1, "rests between calls"),
    (
        "crates/gristmill-conformance/src/judge/client/operator.rs",
        Why::Drives,
        2,
        "a person's pace",
    ),
    (
        "crates/gristmill-conformance/src/judge/client/producer.rs",
        Why::Drives,
        3,
        "lets workers catch up; asks again",
    ),
    ("crates/gristmill-conformance/src/judge/client/scheduler.rs", Why::Drives, 2, "when to look"),
    (
        "crates/gristmill-conformance/src/judge/client/worker.rs",
        Why::Looks,
        2,
        "asks again until answered",
    ),
    (
        "crates/gristmill-conformance/src/judge/together.rs",
        Why::Drives,
        2,
        "how long they work together",
    ),
    (
        "crates/gristmill-conformance/tests/all/defects/flawed/port.rs",
        Why::Drives,
        1,
        "the defect: it hears no wake-up",
    ),
    (
        "crates/gristmill-conformance/tests/all/defects/flawed/told.rs",
        Why::Drives,
        1,
        "the defect: a reclaim in two steps",
    ),
    ("crates/gristmill-core/src/watchdog.rs", Why::Looks, 1, "whether a thread has ended"),
    ("crates/gristmill-pgserver/src/bouncer.rs", Why::Looks, 1, "whether it listens"),
    ("crates/gristmill-pgserver/src/cluster.rs", Why::Looks, 1, "whether a server has left"),
    ("crates/gristmill-pgserver/tests/it/ending.rs", Why::Looks, 1, "`eventually`"),
    ("crates/gristmill-postgres/tests/it/committed_change.rs", Why::Looks, 1, "a lease's end"),
    ("crates/gristmill-postgres/tests/it/patroni/clients.rs", Why::Looks, 2, "asks again"),
    ("crates/gristmill-postgres/tests/it/patroni/clients.rs", Why::Drives, 1, "paces its puts"),
    (
        "crates/gristmill-postgres/tests/it/patroni/clients.rs",
        Why::Fixed,
        1,
        "a worker that takes longer than its lease, on a server's clock",
    ),
    ("crates/gristmill-postgres/tests/it/patroni/cluster.rs", Why::Looks, 2, "other processes"),
    ("crates/gristmill-postgres/tests/it/patroni/mod.rs", Why::Looks, 3, "who leads, what is left"),
    (
        "crates/gristmill-postgres/tests/it/patroni/mod.rs",
        Why::Fixed,
        1,
        "the rate is measured while all is well",
    ),
    ("crates/gristmill-postgres/tests/it/patroni/proxy.rs", Why::Looks, 1, "whether it is cut"),
    ("crates/gristmill-postgres/tests/it/plain.rs", Why::Looks, 1, "when the counts are told"),
    ("crates/gristmill-postgres/tests/it/power_cut.rs", Why::Looks, 1, "whether it has ended"),
    (
        "crates/gristmill-postgres/tests/it/silence.rs",
        Why::Fixed,
        1,
        "ten seconds without a server: all pauses have grown to their longest",
    ),
    ("crates/gristmill-postgres/tests/it/support.rs", Why::Looks, 1, "whether a backend waits"),
    ("crates/gristmill-postgres/tests/it/tls.rs", Why::Looks, 2, "connections of a server"),
    ("crates/gristmill-postgres/tests/it/traffic.rs", Why::Looks, 2, "`until`, and asks again"),
    (
        "crates/gristmill-server/tests/it/dashboard/million.rs",
        Why::Fixed,
        1,
        "a minute of an open overview, of which the cost is measured",
    ),
    (
        "crates/gristmill-server/tests/it/slow.rs",
        Why::Drives,
        1,
        "a client that dribbles, on a clock that goes on by itself",
    ),
    ("crates/gristmill-sqlite/tests/it/group_commit.rs", Why::Looks, 1, "what a file has"),
    ("crates/gristmill/tests/it/main.rs", Why::Looks, 2, "`until`, with a timer and without"),
    ("crates/gristmill/tests/it/schedule_processes.rs", Why::Drives, 1, "when to kill"),
    (
        "crates/gristmill/tests/it/signalled.rs",
        Why::Fixed,
        1,
        "two signals within a moment are one, and the process has no thread left to tell",
    ),
    ("crates/gristmill/tests/it/worker_processes.rs", Why::Looks, 1, "whether it has ended"),
    (
        "crates/gristmill/tests/it/worker_processes.rs",
        Why::Drives,
        1,
        "a handler in another process takes its time, so that a kill finds it at work",
    ),
    (
        "crates/gristmill/tests/it/worker_speed.rs",
        Why::Fixed,
        1,
        "the cost of idle processors is measured over time",
    ),
    ("examples/item-sync/tests/it/shop.rs", Why::Looks, 1, "`until`"),
    ("examples/mail-service/tests/it/command.rs", Why::Looks, 1, "`eventually`"),
    ("examples/mail-service/tests/it/processors.rs", Why::Looks, 1, "`eventually`"),
    (
        "examples/morning-deck/tests/it/desk.rs",
        Why::Fixed,
        1,
        "that nothing more comes, at an application which has a clock of its own",
    ),
];

/// Fixed sleeps in all tests together.
const MOST_FIXED: usize = 9;

pub(crate) fn listed(repo: &Repo) -> Vec<Finding> {
    let mut findings = listed_in(repo, SLEEPS);
    let fixed = SLEEPS.iter().filter(|(_, why, _, _)| *why == Why::Fixed);
    let fixed: usize = fixed.map(|(_, _, times, _)| times).sum();
    if fixed > MOST_FIXED {
        let wrong = format!("{fixed} fixed sleeps in tests, more than {MOST_FIXED}");
        let remedy = "wait for a signal, or move the clock";
        findings.push(Finding::new("crates/tidy/tests/tidy/sleeps.rs", 1, wrong, remedy));
    }
    findings
}

fn listed_in(repo: &Repo, list: &[(&str, Why, usize, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let allowed = |path: &str| {
        let own =
            list.iter().filter(|(listed, _, _, reason)| *listed == path && !reason.is_empty());
        own.map(|(_, _, times, _)| *times).sum::<usize>()
    };
    for file in repo.with_ending("rs") {
        let (found, allowed) = (sleeps(file), allowed(&file.path));
        if let Some(first) = found.get(allowed) {
            let wrong = format!("sleeps {} times and may {allowed} times", found.len());
            let remedy = "wait for a signal or move the clock; where neither can be, list it in \
                          SLEEPS in crates/tidy/tests/tidy/sleeps.rs with the reason";
            findings.push(Finding::new(&file.path, *first, wrong, remedy));
        }
    }
    // One that excuses nothing any more would excuse the next.
    for (number, (path, ..)) in list.iter().enumerate() {
        let first = list.iter().position(|(other, ..)| other == path) == Some(number);
        let found = repo.get(path).map_or(0, |file| sleeps(file).len());
        if first && found < allowed(path) {
            let wrong = format!("listed in SLEEPS with {} and sleeps {found} times", allowed(path));
            findings.push(Finding::new(path, 1, wrong, "correct the list"));
        }
    }
    findings
}

/// The lines on which a test calls a `sleep` of the machine's. A method is somebody
/// else's: a timer's, by a clock that is moved.
fn sleeps(file: &File) -> Vec<usize> {
    let kit = ["crates/gristmill-conformance/src/", "crates/gristmill-pgserver/src/"];
    let whole =
        file.path.contains("/tests/") || kit.iter().any(|folder| file.path.starts_with(folder));
    let tokens = code(&file.text);
    let shipped = match whole {
        true => 0,
        false => tokens.windows(5).position(is_test_mark).unwrap_or(tokens.len()),
    };
    let tests = tokens.get(shipped..).unwrap_or_default();
    let calls = tests.windows(3).filter(|three| match three {
        [before, name, open] => {
            name.is("sleep") && open.is("(") && !before.is(".") && !before.is("fn")
        }
        _ => false,
    });
    calls.filter_map(|three| three.get(1).map(|name| name.line)).collect()
}

fn is_test_mark(tokens: &[Token]) -> bool {
    let mark = ["#", "[", "cfg", "(", "test"];
    tokens.iter().zip(mark).all(|(token, mark)| token.is(mark))
}

#[test]
fn a_sleep_that_is_not_listed_is_caught() {
    let test = "//! A test of sleep().\nfn a() {\n    thread::sleep(A);\n    timer.sleep(A);\n}\n";
    let shipped = "fn a() { thread::sleep(A); }\n#[cfg(test)]\nmod tests {\n    sleep(\"a\");\n}\n";
    let repo = Repo::sample(&[
        ("crates/x/tests/it/a.rs", test),
        ("crates/x/src/b.rs", shipped),
        ("crates/x/src/c.rs", "fn a() { thread::sleep(A); }\n"),
    ]);
    let wanted = [("crates/x/tests/it/a.rs:3", "may 0"), ("crates/x/src/b.rs:4", "may 0")];
    expect(&listed_in(&repo, &[]), &wanted);
    let b = ("crates/x/src/b.rs", Why::Looks, 1, "a thread's end");
    let list = [("crates/x/tests/it/a.rs", Why::Fixed, 1, ""), b];
    expect(&listed_in(&repo, &list), &[("crates/x/tests/it/a.rs:3", "the reason")]);
    let list = [("crates/x/tests/it/a.rs", Why::Fixed, 2, "why not"), b];
    expect(&listed_in(&repo, &list), &[("crates/x/tests/it/a.rs:1", "correct")]);
}

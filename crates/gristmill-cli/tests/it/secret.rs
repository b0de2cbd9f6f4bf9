//! No command tells a password of the store, whichever way it came: every command
//! is run, the new ones too, for they are read from the help.

use std::collections::BTreeMap;
use std::process::Child;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gristmill_pgserver::Server;
use rustix::process::{Pid, Signal, kill_process};

use crate::place::{Place, Running};

/// Both ends of the planted password, which no way of writing a URL changes.
const PLANTED: [&str; 2] = ["hush7", "shh8"];

/// Stores that nobody answers for, with the password in every place, written well
/// and not.
const AWAY: [&str; 8] = [
    "postgres://me:hush7shh8@127.0.0.1:1/shop",
    "postgres://me:hush7%40%2Fshh8@127.0.0.1:1/shop?schema=mill",
    "postgres://me:hush7@shh8@127.0.0.1:1/shop",
    "postgres://me:hush7/?shh8@127.0.0.1:1/shop",
    "postgres://me@127.0.0.1:1/shop?sslmode=disable&password=hush7shh8",
    "postgres://127.0.0.1:1/shop?listen_url=postgres%3A%2F%2Fme%3Ahush7%2540shh8%40h%2Fshop",
    "postgres://127.0.0.1:1/shop?listen_url=postgres://me:hush7@shh8@h/shop",
    "host=127.0.0.1 port=1 user=me password=hush7shh8",
];

/// A way to name the store.
#[derive(Debug, Clone, Copy)]
enum Way {
    Flag,
    Environment,
    Configuration,
}

const WAYS: [Way; 3] = [Way::Flag, Way::Environment, Way::Configuration];

/// Every command with what it must be given, as the help says.
fn commands(url: &str) -> Vec<Vec<String>> {
    let place = Place::new();
    let mut found = Vec::new();
    look(&place, &[], url, &mut found);
    assert!(found.len() > 35, "{found:?}");
    found
}

fn look(place: &Place, path: &[String], url: &str, found: &mut Vec<Vec<String>>) {
    let mut words: Vec<&str> = path.iter().map(String::as_str).collect();
    words.push("--help");
    let help = place.ok(&words);
    let below = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    for line in below.take_while(|line| !line.is_empty()) {
        // A long description goes on in the next line, further to the right.
        let name = line.strip_prefix("  ").and_then(|line| line.split(' ').next());
        if let Some(name) = name.filter(|name| !name.is_empty() && *name != "help") {
            let path: Vec<String> = path.iter().cloned().chain([name.to_owned()]).collect();
            look(place, &path, url, found);
        }
    }
    let usage = help.lines().find_map(|line| line.strip_prefix("Usage: gristmill ")).unwrap();
    if usage.contains("<COMMAND>") {
        return;
    }
    let given = usage.split(' ').skip(path.len()).filter(|word| !word.starts_with('['));
    let given = given.map(|word| match word.trim_end_matches("...") {
        "<URL>" => url.to_owned(),
        "<CMD>" => "cat".to_owned(),
        "<SHELL>" => "bash".to_owned(),
        "<DIR>" | "<FILE>" => "made".to_owned(),
        "<QUEUE>" | "<NAME>" => "emails".to_owned(),
        word if word.starts_with('<') => "1".to_owned(),
        word => word.to_owned(),
    });
    let more: &[&str] = match path.last().map(String::as_str) {
        Some("work") => &["--drain"],
        Some("bench") => &["--only", "nothing"],
        _ => &[],
    };
    let more = more.iter().map(|word| (*word).to_owned());
    found.push(path.iter().cloned().chain(given).chain(more).collect());
}

fn configuration(url: &str) -> String {
    format!("store: \"{url}\"\nqueues:\n  - {{name: emails, exec: cat}}\n")
}

/// Runs a command and returns all it said.
fn said(words: &[String], url: &str, way: Way, json: bool) -> String {
    let place = Place::new();
    place.write("gristmill.yaml", "queues:\n  - {name: emails, exec: cat}\n");
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    if json {
        words.push("--json");
    }
    if let Way::Flag = way {
        words.extend(["--store", url]);
    }
    let mut command = place.command(&words);
    command.env("GRISTMILL_LOG", "trace");
    match way {
        Way::Flag => {}
        Way::Environment => {
            command.env("GRISTMILL_STORE", url);
        }
        Way::Configuration => place.write("gristmill.yaml", configuration(url)),
    }
    let child = command.spawn().unwrap();
    let stopping = stop_if_it_stays(&child, words.first() == Some(&"up"));
    let output = child.wait_with_output().unwrap();
    stopping.join().unwrap();
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    text
}

/// Ends what does not end by itself, so that a new command that stays is read too.
fn stop_if_it_stays(child: &Child, stays: bool) -> std::thread::JoinHandle<()> {
    let (pid, start) = (Pid::from_child(child), Instant::now());
    let patience = Duration::from_secs(if stays { 2 } else { 10 });
    std::thread::spawn(move || {
        while crate::place::is_alive(&pid.as_raw_nonzero().to_string()) {
            if start.elapsed() > patience {
                let _ = kill_process(pid, Signal::TERM);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    })
}

fn tells(text: &str) -> bool {
    PLANTED.iter().any(|part| text.contains(part))
}

/// Runs all of them, side by side, and returns what told a password.
fn those_that_tell(runs: &[(Vec<String>, String, Way, bool)]) -> BTreeMap<String, String> {
    let next = AtomicUsize::new(0);
    let found = std::sync::Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((words, url, way, json)) =
                    runs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let text = said(words, url, *way, *json);
                    if tells(&text) {
                        let name = format!("{} ({way:?}, {url})", words.join(" "));
                        found.lock().unwrap().insert(name, text);
                    }
                }
            });
        }
    });
    found.into_inner().unwrap()
}

#[test]
fn no_command_tells_the_password_of_a_store_that_is_away() {
    let mut runs = Vec::new();
    for (number, url) in AWAY.iter().enumerate() {
        for (place, words) in commands(url).into_iter().enumerate() {
            // Each command with each URL; in which way takes turns.
            let turn = number + place;
            runs.push((words, (*url).to_owned(), WAYS[turn % 3], turn % 2 == 0));
        }
    }
    let found = those_that_tell(&runs);
    assert!(found.is_empty(), "{} of {}: {found:#?}", found.len(), runs.len());
}

#[test]
fn no_help_tells_the_password_of_the_environment() {
    let runs: Vec<_> = commands(AWAY[0])
        .into_iter()
        .map(|mut words| {
            words.push("--help".to_owned());
            (words, AWAY[0].to_owned(), Way::Environment, false)
        })
        .collect();
    let found = those_that_tell(&runs);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_url_in_a_wrong_place_is_not_told_back() {
    for url in AWAY {
        for words in [&[url][..], &["stats", url], &["stats", "--stroe", url], &["copy", url, url]]
        {
            for words in [words.to_vec(), [words, &["--json"]].concat()] {
                let answer = Place::new().run(&words);
                assert!(!tells(&answer.stdout), "{words:?}: {answer:?}");
                // Only what has the form of a URL can be known for one.
                let is_url = url.contains("://");
                assert!(!is_url || !tells(&answer.stderr), "{words:?}: {answer:?}");
            }
        }
    }
}

#[test]
fn a_mistake_in_the_configuration_shows_its_line_without_the_url() {
    for url in AWAY {
        for text in [
            format!("store: {url}: x\nqueues: []\n"),
            format!("{{store: \"{url}\", queues: [}}\n"),
            format!("store:\n  - {url}\nqueue: 1\n"),
            format!("store: >-\n  {url}\nqueue: 1\n"),
            format!("store: \"{url}\nqueue: 1\n"),
        ] {
            let place = Place::new();
            place.write("gristmill.yaml", &text);
            for words in [&["config", "check"][..], &["up"], &["stats"]] {
                let answer = place.run(words);
                let told = format!("{}{}", answer.stdout, answer.stderr);
                assert!(!tells(&told), "{words:?} of {text}: {told}");
            }
        }
    }
}

#[test]
fn no_command_tells_the_password_of_a_postgres_that_answers() {
    let server = Server::shared().unwrap();
    let database = server.database("secret", |_| Ok(())).unwrap();
    let role = format!("planted_{}", std::process::id());
    database.psql(&format!("CREATE ROLE {role} SUPERUSER LOGIN PASSWORD 'hush7@/shh8'")).unwrap();
    let tcp = database.tcp_url();
    let (_, place) = tcp.rsplit_once('@').unwrap();
    let url = format!("postgres://{role}:hush7%40%2Fshh8@{place}?password=hush7%40%2Fshh8");
    Place::new().ok(&["queue", "add", "emails", "--store", &url]);
    let runs: Vec<_> = commands(&url)
        .into_iter()
        .enumerate()
        .flat_map(|(turn, words)| {
            // In a file of the folder it is also said which store is meant.
            let also = (words.clone(), url.clone(), Way::Configuration, false);
            [(words, url.clone(), WAYS[turn % 2], turn % 4 < 2), also]
        })
        .collect();
    let found = those_that_tell(&runs);

    // What `up` says to type reaches the store that it serves.
    let place = Place::new();
    place.write("gristmill.yaml", "queues:\n  - {name: emails, exec: cat}\n");
    let mut up = place.start(&["up", "--store", &url]);
    let shown = Running::until(&mut up.stdout, "Stop with Ctrl-C").join("\n");
    up.signal(Signal::TERM);
    let (code, ..) = up.end();
    database.psql(&format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}")).unwrap();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("with GRISTMILL_STORE set to the store's whole URL"), "{shown}");
    assert!(!shown.contains("--store") && !tells(&shown), "{shown}");
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn what_up_says_to_type_reaches_the_store_it_serves() {
    let text = "queues:\n  - {name: emails, exec: cat}\n";
    for (words, store, part, not) in [
        (&["up"][..], "store: sqlite://a.db\n", " stats\n", "--store"),
        (&["up", "--store", "sqlite://b.db"], "", "--store sqlite://b.db stats\n", "GRISTMILL"),
        (&["up", "--config", "c.yaml"], "store: sqlite://c.db\n", "--store sqlite://c.db", "GRIST"),
    ] {
        let place = Place::new();
        place.write(
            words.get(2).filter(|word| word.ends_with("yaml")).unwrap_or(&"gristmill.yaml"),
            format!("{store}{text}"),
        );
        let mut up = place.start(words);
        let shown = Running::until(&mut up.stdout, "Stop with Ctrl-C").join("\n");
        up.signal(Signal::TERM);
        assert_eq!(up.end().0, 0);
        assert!(shown.contains(part) && !shown.contains(not), "{words:?}: {shown}");
    }
}

//! The configuration: what is said about a broken one, where each value comes from,
//! and secrets that stand elsewhere.

use serde_json::Value;

use crate::place::Place;

/// A broken file, the place of the mistake, what it is about, and what to do.
type Broken = (&'static [u8], &'static str, &'static str, &'static str);

#[rustfmt::skip]
const BROKEN: &[Broken] = &[
    // Files that are none.
    (b"", "1:1", "no queues", "add one under 'queues:'"),
    (b"  \n# nothing\n", "3:1", "no queues", "add one under 'queues:'"),
    (b"\xff\xfeq\0", "1:1", "not text in UTF-8", "save the file as such"),
    (b"queues:\n  - {name: \"ab\xc3\"}\n", "2:15", "not text in UTF-8", "save the file as such"),
    (b"- a\n", "1:1", "the configuration", "fields, like 'name: value'"),
    (b"queues:\n\t- name: a\n", "2:2", "tabs", "indent with spaces"),
    (b"queues: [\n", "1:9", "unclosed bracket", "close it"),
    (b"queues:\n- name: \"a\n", "3:1", "quoted", "close the quote"),
    (b"queues:\n  - name: a\n   exec: cat\n", "3:4", "block", "begins in the same column"),
    (b"queues: [{name: a}]\n---\nqueues: []\n", "3:1", "multiple", "take out all but one"),
    (b"queues: *x\n", "1:9", "unknown value", "say it with &"),
    (b"queues: [{name: a\x1b}]\n", "1:17", "unexpected character", "take it out"),
    // The top.
    (b"queues: [{name: a}]\nqueues: []\n", "2:1", "'queues' is said twice", "keep one"),
    (b"queues: [{name: a}]\nsede: []\n", "2:1", "no field 'sede'", "did you mean 'seed'?"),
    (b"queues: [{name: a}]\nhandlers: {b: cat}\n", "2:11", "handlers", "write 'exec:' or 'http:' below"),
    (b"queues: {name: a}\n", "1:9", "queues wants a list", "begin with '- '"),
    (b"store: mysql://h/d\nqueues: [{name: a}]\n", "1:8", "no store 'mysql:'", "use memory:, sqlite:"),
    (b"store: [a.db]\nqueues: [{name: a}]\n", "1:8", "store wants a text, not a list", "write it behind"),
    (b"store: {env: GRISTMILL_NOT_SET}\nqueues: [{name: a}]\n", "1:8", "GRISTMILL_NOT_SET", "set it"),
    (b"store: {file: none}\nqueues: [{name: a}]\n", "1:8", "no file ./none", "make it"),
    (b"store: {env: A, file: b}\nqueues: [{name: a}]\n", "1:8", "store", "name one place"),
    (b"store: {url: x}\nqueues: [{name: a}]\n", "1:9", "no field 'url'", "it has env, file"),
    (b"listen: everywhere:80\nqueues: [{name: a}]\n", "1:9", "no address to listen at", "127.0.0.1:4747"),
    (b"listen: {port: 1}\nqueues: [{name: a}]\n", "1:9", "listen wants a text, not fields", "write it behind"),
    (b"dashboard: readonly\nqueues: [{name: a}]\n", "1:12", "not 'readonly'", "on or read-only"),
    (b"queues: [{name: a}]\ncontracts: [none.yaml]\n", "2:13", "contract", "none.yaml"),
    (b"queues: [{name: a}]\nmanager: maybe\n", "2:10", "manager is true, false", "like {every: 2s}"),
    // Queues.
    (b"queues:\n  - emails\n", "2:5", "a queue", "fields, like 'name: value'"),
    (b"queues:\n  - {exec: cat}\n", "2:5", "a queue", "needs a field 'name'"),
    (b"queues:\n  - {name: a b}\n", "2:12", "'a b' is not a queue name", "are)"),
    (b"queues: [{name: a}, {name: a}]\n", "1:21", "'a' is declared twice", "keep one"),
    (b"queues: [{name: a, name: b}]\n", "1:20", "'name' is said twice", "keep one"),
    (b"queues: [{name: a, exec: [cat]}]\n", "1:26", "exec wants a text, not a list", "write it behind"),
    (b"queues: [{name: a, exec: cat, processors: many}]\n", "1:43", "processors", "from 1 to 1000"),
    (b"queues: [{name: a, settings: {lease: soon}}]\n", "1:38", "lease: 'soon'", "write it like 500ms"),
    (b"queues: [{name: a, settings: {leese: 5s}}]\n", "1:31", "no setting 'leese'", "did you mean 'lease'?"),
    (b"queues: [{name: a, settings: {max_attempts: 0}}]\n", "1:31", "max_attempts is 0", "say 1 or more"),
    (b"queues: [{name: a, settings: {backoff: 2s}}]\n", "1:31", "backoff has parts", "write it like"),
    (b"queues: [{name: a, settings: {unique: never}}]\n", "1:39", "unique: 'never'", "one of pending, active"),
    // Schedules and seeded tasks.
    (b"queues: [{name: aa}]\nschedules: [{name: s, queue: ab, every: 1m, payload: 1}]\n", "2:30", "no queue 'ab'", "did you mean 'aa'?"),
    (b"queues: [{name: a}]\nschedules: [{name: s, queue: a, cron: 99 * * * *, payload: 1}]\n", "2:39", "cron: '99 * * * *'", "write it like 0 7"),
    (b"queues: [{name: a}]\nschedules: [{name: s, queue: a, every: 5, payload: 1}]\n", "2:40", "every: '5'", "unit is missing"),
    (b"queues: [{name: a}]\nschedules: [{name: s, queue: a, every: 5s, zone: Mars, payload: 1}]\n", "2:50", "'Mars' is not a time zone", "like Europe/"),
    (b"queues: [{name: a}]\nseed: [{queue: a, payload: 1}]\n", "2:8", "a task to seed", "needs a field 'id'"),
];

#[test]
fn a_broken_file_is_told_with_place_field_and_advice() {
    assert!(BROKEN.len() >= 30);
    let place = Place::new();
    let mut wrong = Vec::new();
    for (file, at, about, advice) in BROKEN {
        place.write("gristmill.yaml", file);
        let answer = place.run(&["config", "check"]);
        let said = &answer.stderr;
        let begins = said.starts_with(&format!("gristmill: gristmill.yaml:{at}: "));
        if answer.code != 2 || !begins || !said.contains(about) || !said.contains(advice) {
            let file = String::from_utf8_lossy(file);
            wrong.push(format!("{file:?} at {at}, '{about}', '{advice}': {answer:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), BROKEN.len(), wrong.join("\n"));
    assert!(!place.path("gristmill.db").exists());
}

const WHOLE: &str = "\
store: {env: SHOP_STORE}
listen: off
queues:
  - name: emails
    settings: {lease: 5s, backoff: {base: 1s}}
    exec: curl https://me:s3cret@example.org
schedules:
  - name: tick
    queue: emails
    every: 10s
    payload: 1
";

/// One value of `config show --json`.
/// What a package brings runs as it stands: queues are declared over HTTP, or added to it.
#[test]
fn the_packages_configuration_is_fine() {
    let place = Place::new();
    place.write("gristmill.yaml", include_bytes!("../../../../packaging/gristmill.yaml"));
    let said = place.ok(&["config", "check"]);
    assert!(said.contains("is fine: 0 queues"), "{said}");
}

fn shown<'a>(values: &'a Value, name: &str) -> &'a Value {
    let found = values.as_array().unwrap().iter().find(|value| value["name"] == name);
    assert!(found.is_some(), "{name}: {values}");
    found.unwrap()
}

#[test]
fn every_value_says_where_it_comes_from() {
    let place = Place::new();
    place.write("gristmill.yaml", WHOLE);
    let run = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = place.command(words);
        command.env_remove("GRISTMILL_LISTEN");
        command.envs(variables.iter().copied());
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(!said.contains("s3cret"), "{said}");
        said
    };
    let url = ("SHOP_STORE", "postgres://me:s3cret@db/shop");
    let said = run(&["config", "show", "--json"], &[url]);
    let values: Value = serde_json::from_str(&said).unwrap();
    for (name, value, from, line) in [
        ("store", "postgres://me@db/shop", "file", Some(1)),
        ("listen", "off", "file", Some(2)),
        ("dashboard", "on", "default", None),
        ("log", "warn", "default", None),
        ("manager", "false", "default", None),
        ("queues.emails.exec", "curl https://…", "file", Some(6)),
        ("queues.emails.processors", "1", "default", None),
        ("queues.emails.settings.lease", "5s", "file", Some(5)),
        ("queues.emails.settings.backoff.base", "1s", "file", Some(5)),
        ("queues.emails.settings.backoff.cap", "1h", "default", None),
        ("queues.emails.settings.max_attempts", "5", "default", None),
        ("schedules.tick.every", "10s", "file", Some(10)),
        ("schedules.tick.zone", "UTC", "default", None),
    ] {
        let found = shown(&values, name);
        assert_eq!((&found["value"], &found["from"]), (&value.into(), &from.into()), "{name}");
        assert_eq!(found["line"].as_u64(), line, "{name}");
    }
    assert_eq!(shown(&values, "store")["kept_in"], "variable SHOP_STORE");
    let table = run(&["config", "show"], &[url]);
    for part in ["gristmill.yaml:1, variable SHOP_STORE", "gristmill.yaml:5", "default"] {
        assert!(table.contains(part), "{part}: {table}");
    }

    let others = [url, ("GRISTMILL_LISTEN", "127.0.0.1:5000"), ("GRISTMILL_LOG", "debug")];
    let words = ["config", "show", "--json", "--store", "sqlite://b.db"];
    let values: Value = serde_json::from_str(&run(&words, &others)).unwrap();
    for (name, value, from) in [
        ("store", "sqlite://b.db", "flag"),
        ("listen", "127.0.0.1:5000", "environment"),
        ("log", "debug", "environment"),
    ] {
        let found = shown(&values, name);
        assert_eq!((&found["value"], &found["from"]), (&value.into(), &from.into()), "{name}");
    }
    let others = [url, ("GRISTMILL_STORE", "sqlite://c.db")];
    let values: Value = serde_json::from_str(&run(&words[..3], &others)).unwrap();
    assert_eq!(shown(&values, "store")["kept_in"], "GRISTMILL_STORE");
}

#[test]
fn a_secret_may_stand_in_a_file_or_in_the_environment() {
    let place = Place::new();
    std::fs::create_dir(place.path("etc")).unwrap();
    place.write("etc/store", "sqlite://kept.db\n");
    // Relative to the configuration, like contracts.
    place.write("etc/g.yaml", "store: {file: store}\nqueues: [{name: a}]\n");
    place.ok(&["config", "check", "--config", "etc/g.yaml"]);
    place.write("gristmill.yaml", "store: {file: etc/store}\nqueues: [{name: a}]\n");
    place.ok(&["queue", "add", "a"]);
    assert!(place.path("kept.db").exists(), "another store was taken");
    place.write("gristmill.yaml", "store: {env: SHOP_STORE}\nqueues: [{name: a}]\n");
    let asked = |url: &str| {
        let output = place.command(&["stats"]).env("SHOP_STORE", url).output().unwrap();
        String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap()
    };
    assert!(asked("sqlite://kept.db").contains("store sqlite://kept.db"));
    let said = asked("postgres://me:s3cret@x@host/db");
    assert!(said.contains("gristmill.yaml:1:8") && !said.contains("s3cret"), "{said}");
    // A value that is no secret stays as it is.
    place.write("gristmill.yaml", "store: sqlite://$HOME.db\nqueues: [{name: a}]\n");
    let values = place.json(&["config", "show"]);
    assert_eq!(shown(&values, "store")["value"], "sqlite://$HOME.db");
}

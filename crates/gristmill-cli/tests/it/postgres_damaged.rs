//! Rows that nobody can read, on PostgreSQL: every command shows them and goes
//! on with the others.

use gristmill_pgserver::{Error, Server};

use crate::place::Place;

const BAD: &str = r#"
    UPDATE gristmill.task SET headers = '{"shop": 17}' WHERE id = 2;
    UPDATE gristmill.task SET headers = '[1]', encoding = 9 WHERE id = 4;
    UPDATE gristmill.task SET priority = -1 WHERE id = 5;
    SELECT gristmill.fail(c.id, c.token, 'no') FROM gristmill.claim('q', worker => 'w') c;
    UPDATE gristmill.failed SET history = jsonb_set(history, '{0,worker}', '"me@host1:4711"');
"#;

#[test]
fn damaged_rows_blind_no_command() {
    let place = Place::new();
    let server = Server::shared().unwrap();
    let made = server.database("migrated", |url| {
        let answer = Place::new().run(&["--store", url, "migrate"]);
        if answer.code == 0 { Ok(()) } else { Err(Error::new(answer.stderr)) }
    });
    let database = made.unwrap();
    let url = database.url();
    let on = |words: &[&str]| {
        let words: Vec<&str> = ["--store", &url].iter().chain(words).copied().collect();
        place.run(&words)
    };
    assert_eq!(on(&["queue", "add", "q", "max_attempts=1"]).code, 0);
    for n in 0..6 {
        assert_eq!(on(&["put", "q", &n.to_string()]).code, 0);
    }
    database.psql(BAD).unwrap();

    let listed = on(&["list"]);
    assert_eq!((listed.code, listed.stdout.lines().count()), (0, 7), "{}", listed.stdout);
    assert!(listed.stdout.contains("damaged: its header 'shop' is no text"), "{}", listed.stdout);
    let shown = on(&["show", "4"]).stdout;
    let both = "its encoding is 9, which is none; its headers are no object of texts";
    assert!(shown.contains(&format!("damaged   {both}")), "{shown}");
    let json = on(&["show", "4", "--json"]).stdout;
    assert!(json.contains(&format!("\"damaged\":\"{both}\"")), "{json}");
    let failed = on(&["show", "5"]).stdout;
    assert!(failed.contains("by me@host1:4711"), "{failed}");
    for words in [&["failed"][..], &["stats"], &["doctor"], &["workers"], &["schedules"]] {
        let answer = on(words);
        assert_eq!(answer.code, 0, "{words:?}: {}", answer.stderr);
    }
    let checked = on(&["check"]);
    assert_eq!(checked.code, 5, "{}", checked.stderr);
    let said: Vec<&str> = checked.stdout.lines().collect();
    let second = "task 4: its encoding is 9, which is none";
    let third = "task 4: its headers are no object of texts";
    assert_eq!(said, ["task 2: its header 'shop' is no text", second, third]);

    // Three neighbours run; the two fail with their reason.
    let worked = on(&["work", "--exec", "cat", "--drain", "--json"]);
    assert_eq!(worked.code, 0, "{}", worked.stderr);
    let failed = on(&["failed", "--json"]).stdout;
    let failed: serde_json::Value = serde_json::from_str(&failed).unwrap();
    let errors: Vec<&str> =
        failed.as_array().unwrap().iter().map(|task| task["error"].as_str().unwrap()).collect();
    assert!(errors.iter().any(|error| error.ends_with(both)), "{errors:?}");
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert_eq!(on(&["discard", "--all"]).code, 0);
    assert_eq!(on(&["check"]).code, 0, "what was set aside is gone");
}

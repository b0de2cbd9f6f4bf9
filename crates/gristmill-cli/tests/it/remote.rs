//! `--store http://…`: the store of a service of this build, with nothing but its port and
//! a token.

use std::process::Command;

use serde_json::Value;

use crate::http::started;
use crate::place::{Answer, Place, Running};

/// A service over a place of its own, and another place without a store.
fn elsewhere(token: &[&str]) -> (Running, [Place; 2], String, String) {
    let (there, here) = (Place::with(&[&["emails"]]), Place::new());
    let words: Vec<&str> = ["token", "create", "here"].iter().chain(token).copied().collect();
    let token = there.ok(&words).trim().to_owned();
    let (serve, address) = started(&there, &["serve"]);
    (serve, [there, here], format!("http://{address}"), token)
}

fn with_token(place: &Place, token: &str, words: &[&str]) -> Answer {
    let mut command: Command = place.command(words);
    let output = command.env("GRISTMILL_TOKEN", token).output().unwrap();
    Answer {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_store_elsewhere_is_put_to_and_worked_from() {
    let (_serve, [_there, here], url, token) =
        elsewhere(&["--scope", "put,work,read", "--queue", "emails"]);
    let run = |words: &[&str]| {
        let words: Vec<&str> = ["--store", &url].iter().chain(words).copied().collect();
        let answer = with_token(&here, &token, &words);
        assert!(!format!("{answer:?}").contains(&token), "{answer:?}");
        answer
    };
    let json = |words: &[&str]| -> Value {
        let words: Vec<&str> = words.iter().chain(&["--json"]).copied().collect();
        let answer = run(&words);
        assert_eq!(answer.code, 0, "{answer:?}");
        serde_json::from_str(&answer.stdout).unwrap()
    };
    assert_eq!(json(&["put", "emails", r#"{"to":"ada"}"#, "--key", "ada"])["outcome"], "enqueued");
    assert_eq!(json(&["put", "emails", "1", "--key", "ada"])["outcome"], "duplicate");
    assert_eq!(json(&["stats", "emails"])[0]["ready"], 1);
    let worked = run(&["work", "emails", "--exec", "cat > got", "--drain"]);
    assert_eq!(worked.code, 0, "{worked:?}");
    assert_eq!(std::fs::read_to_string(here.path("got")).unwrap(), r#"{"to":"ada"}"#);
    let after = json(&["stats", "emails"]);
    assert_eq!((&after[0]["total"], &after[0]["counters"]["done"]), (&0.into(), &1.into()));
    assert!(!here.path("gristmill.db").exists(), "nothing was made here");
    // What is not this token's says so.
    for (words, why) in [
        (&["pause", "emails"][..], "scope admin"),
        (&["queue", "add", "other"], "scope admin"),
        (&["token", "list"], "is about all of them"),
    ] {
        let refused = run(words);
        assert_ne!(refused.code, 0, "{words:?}");
        assert!(refused.stderr.contains(why), "{words:?}: {refused:?}");
    }
}

/// The scope that docs/remote.md names for each is enough, and what is refused says which
/// one it wants, not what to do about files.
#[test]
fn a_worker_needs_no_more_than_to_work() {
    let (_serve, [_there, here], url, token) = elsewhere(&["--scope", "put,work"]);
    let run = |words: &[&str]| {
        let words: Vec<&str> = ["--store", &url].iter().chain(words).copied().collect();
        with_token(&here, &token, &words)
    };
    assert_eq!(run(&["put", "emails", "1"]).code, 0);
    let misspelt = run(&["work", "email", "--exec", "true", "--drain"]);
    assert!(misspelt.stderr.contains("did you mean 'emails'?"), "{misspelt:?}");
    let worked = run(&["work", "emails", "--exec", "cat > got", "--drain"]);
    assert_eq!(worked.code, 0, "{worked:?}");
    assert!(here.path("got").exists(), "{worked:?}");
    let refused = run(&["stats"]);
    assert_eq!(refused.code, 5, "{refused:?}");
    let (read, path) = (refused.stderr.contains("scope read"), refused.stderr.contains("path"));
    assert!(read && !path && !refused.stderr.contains(".;"), "{refused:?}");
}

#[test]
fn who_has_no_token_and_who_finds_nobody_is_told() {
    let (serve, [_there, here], url, token) = elsewhere(&["--scope", "admin"]);
    let words = ["--store", &url, "stats"];
    let refused = here.run(&words);
    assert!(refused.stderr.contains("this service asks for a token"), "{refused:?}");
    // In the address it is as good, and is not shown either.
    let with = url.replace("http://", &format!("http://{token}@"));
    let shown = here.run(&["--store", &with, "list", "nope"]);
    assert!(shown.code != 0 && !format!("{shown:?}").contains(&token), "{shown:?}");
    // An admin's token makes no other.
    let made =
        with_token(&here, &token, &["--store", &url, "token", "create", "x", "--scope", "put"]);
    assert!(made.stderr.contains("where the store is"), "{made:?}");
    let added = with_token(&here, &token, &["--store", &url, "queue", "add", "more"]);
    assert_eq!(added.code, 0, "{added:?}");
    serve.kill();
    let away = with_token(&here, &token, &words);
    assert_eq!(away.code, 4, "{away:?}");
    assert!(away.stderr.contains("nothing was written"), "{away:?}");
}

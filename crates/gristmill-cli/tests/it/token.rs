//! Tokens from the command line to the door.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::http::{ask, started};
use crate::place::{Place, Running, eventually};

/// The status of a request with a token.
fn with(address: &str, token: &str, method: &str, path: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: queues.internal\r\nconnection: close\r\n\
         authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn others_are_served_with_a_token_only() {
    let place = Place::new();
    place.write("gristmill.yaml", "listen: 0.0.0.0:0\nqueues:\n  - {name: emails}\n");
    let mut command = place.command(&["up"]);
    let output = command.env_remove("GRISTMILL_LISTEN").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in ["0.0.0.0:0", "other machines", "gristmill token create", "127.0.0.1"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!place.path("gristmill.db").exists(), "a start that failed left a store");

    let made = place.run(&["token", "create", "shop", "--scope", "put", "--queue", "emails"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert!(made.stderr.contains("shown this once"), "{made:?}");
    assert!(made.stderr.contains("everybody"), "{made:?}");
    let token = made.stdout.trim();
    assert!(!made.stderr.contains(token) && made.stdout.lines().count() == 1, "{made:?}");

    let mut command = place.command(&["up"]);
    command.env_remove("GRISTMILL_LISTEN");
    let mut up = Running::of(&mut command);
    let seen = Running::until(&mut up.stdout, "  http ");
    let port = seen.last().unwrap().split("0.0.0.0:").nth(1).unwrap();
    let address = format!("127.0.0.1:{}", port.split(' ').next().unwrap());
    Running::until(&mut up.stdout, "Stop with Ctrl-C");
    let put =
        |token: &str| with(&address, token, "POST", "/v1/queues/emails/tasks", r#"{"payload":1}"#);
    assert_eq!((ask(&address, "GET", "/v1/queues", "").0, put("x"), put(token)), (401, 401, 201));
    assert_eq!(with(&address, token, "GET", "/v1/queues", ""), 403);
    assert_eq!(ask(&address, "GET", "/livez", "").0, 200);

    let listed = place.json(&["token", "list"]);
    assert_eq!(listed[0]["name"], "shop");
    assert_eq!(listed[0]["created_by"], "tester");
    assert!(!listed.to_string().contains(token), "{listed}");
    // Nor is it anywhere in the store's files.
    for file in std::fs::read_dir(place.path("")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let digits = token.strip_prefix("gristmill_").unwrap().as_bytes();
        assert!(!bytes.windows(digits.len()).any(|window| window == digits));
    }
    let revoked = place.run(&["token", "revoke", "shop"]);
    assert!(revoked.code == 0 && revoked.stderr.contains("lets nobody in"), "{revoked:?}");
    eventually("it is refused", || put(token) == 401);
    assert_eq!(ask(&address, "GET", "/v1/queues", "").0, 401, "others can reach it");
    assert_eq!(place.run(&["token", "revoke", "shop"]).code, 3);
}

#[test]
fn a_service_of_this_machine_asks_as_soon_as_there_is_a_token() {
    let place = Place::with(&[&["emails"]]);
    let (_serve, address) = started(&place, &["serve"]);
    assert_eq!(ask(&address, "GET", "/v1/queues", "").0, 200);
    place.ok(&["token", "create", "ada", "--scope", "admin", "--expires", "1h"]);
    eventually("it asks", || ask(&address, "GET", "/v1/queues", "").0 == 401);
}

#[test]
fn what_cannot_be_a_token_is_said() {
    let place = Place::new();
    for (words, code, part) in [
        (&["create", "x"][..], 2, "--scope"),
        (&["create", "x", "--scope", "root"], 2, "put, work, read or admin"),
        (&["create", "x", "--scope", ""], 2, "put, work, read or admin"),
        (&["create", "x", "--scope", "put", "--queue", "a*b"], 2, "the beginning of names"),
        (&["create", "x", "--scope", "put", "--expires", "soon"], 2, "--expires"),
        (&["create", "x", "--scope", "put", "--expires", "1ms"], 2, "from a second to ten years"),
        (&["create", "a b", "--scope", "put"], 2, "no name for a token"),
        (&["list"], 5, "there is no store"),
        (&["revoke", "x"], 5, "there is no store"),
    ] {
        let all: Vec<&str> = ["token"].iter().chain(words).copied().collect();
        let answer = place.run(&all);
        assert!(answer.code == code && answer.stderr.contains(part), "{words:?}: {answer:?}");
    }
    place.ok(&["token", "create", "x", "--scope", "put"]);
    let again = place.run(&["token", "create", "x", "--scope", "put"]);
    assert!(again.code == 3 && again.stderr.contains("revoke it first"), "{again:?}");
    let made = place.json(&["token", "create", "y", "--scope", "read,work", "--queue", "a,b-*"]);
    assert!(made["token"].as_str().unwrap().starts_with("gristmill_"), "{made}");
    assert_eq!(made["scopes"], serde_json::json!(["read", "work"]));
    assert_eq!(made["queues"], serde_json::json!(["a", "b-*"]));
}

#[test]
fn what_operators_do_here_is_in_the_audit_log() {
    let place = Place::with(&[&["emails"]]);
    place.ok(&["put", "emails", "1"]);
    place.ok(&["pause", "emails", "--by", "ada"]);
    place.ok(&["queue", "set", "emails", "max_attempts=7"]);
    place.ok(&["cancel", "--queue", "emails", "--note", "not needed"]);
    place.ok(&["token", "create", "shop", "--scope", "put"]);
    place.ok(&["token", "revoke", "shop"]);
    // What was refused is none.
    assert_eq!(place.run(&["token", "revoke", "shop"]).code, 3);
    let lines = place.json(&["audit"]);
    let told: Vec<String> = lines
        .as_array()
        .unwrap()
        .iter()
        .map(|line| {
            assert_eq!((&line["via"], &line["actor"]), (&"cli".into(), &serde_json::Value::Null));
            let of = |name: &str| line[name].as_str().unwrap_or("-").to_owned();
            let moved = &line["moved"];
            format!("{} {} {} {moved} {}", of("action"), of("by"), of("target"), of("note"))
        })
        .collect();
    assert_eq!(
        told,
        [
            "token.revoke tester shop null -",
            "token.create tester shop null put for all queues",
            "tasks.cancel tester - 1 not needed",
            "queues.change tester emails null max_attempts: 5 -> 7",
            "queues.pause ada emails null -",
        ]
    );
    let shown = place.ok(&["audit", "--limit", "2"]);
    assert!(shown.contains("token.revoke") && !shown.contains("tasks.cancel"), "{shown}");
}

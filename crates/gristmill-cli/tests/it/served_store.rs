//! Which store a command means: what is said, the environment, the configuration
//! of the folder, the default.

use crate::place::Place;

/// A folder that is served from another store than the default, which is there
/// as well.
fn served() -> Place {
    let place = Place::with(&[&["emails"]]);
    for (store, tasks) in [("sqlite://served.db", 2), ("sqlite://other.db", 3)] {
        for _ in 0..tasks {
            place.ok(&["put", "emails", "1", "--create", "--store", store]);
        }
    }
    place.write(
        "gristmill.yaml",
        "store: sqlite://served.db\nqueues:\n  - {name: emails, exec: cat}\n",
    );
    place
}

#[test]
fn commands_use_the_store_that_is_served() {
    let place = served();
    let answer = place.run(&["put", "emails", "1"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(answer.stderr.trim(), "store sqlite://served.db, as gristmill.yaml says");
    let of = |more: &[&str]| {
        let words: Vec<&str> = ["stats"].iter().chain(more).copied().collect();
        place.json(&words)[0]["ready"].clone()
    };
    assert_eq!(of(&[]), 3, "the configuration's");
    assert_eq!(of(&["--store", "sqlite://gristmill.db"]), 0, "what is said wins");
    let mut command = place.command(&["stats", "--json"]);
    let out = command.env("GRISTMILL_STORE", "sqlite://other.db").output().unwrap();
    let stats: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(stats[0]["ready"], 3);
    assert!(out.stderr.is_empty());
}

#[test]
fn a_configuration_that_cannot_be_read_is_not_passed_over() {
    let place = served();
    for text in ["store: [", "store: {a: 1}\n"] {
        place.write("gristmill.yaml", text);
        let answer = place.run(&["stats"]);
        assert_eq!(answer.code, 2, "{text}: {answer:?}");
        assert!(answer.stderr.contains("--store"), "{}", answer.stderr);
        place.ok(&["stats", "--store", "sqlite://served.db"]);
    }
    // Whatever else is wrong in it is told by those who use it.
    place.write("gristmill.yaml", "store: sqlite://served.db\nqueue: 1\n");
    assert_eq!(place.json(&["stats"])[0]["ready"], 2);
}

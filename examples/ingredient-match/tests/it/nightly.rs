//! The nightly workflow: failed tasks sent back with a note, and a list of
//! what was claimed too often.

use crate::kitchen::Kitchen;

#[test]
fn failed_tasks_are_sent_back_on_request_with_a_note_and_no_resolver() {
    let kitchen = Kitchen::new();
    kitchen.put("scraper", &["2 aubergines", "a little love"]);
    kitchen.run(&["worker.py"]);
    let said = kitchen.run(&["nightly.sh"]);
    assert!(!said.contains("sent back"), "nobody asked: {said}");
    assert_eq!(kitchen.ask("SELECT failed FROM gristmill.stats()"), "2");

    kitchen.ask("INSERT INTO ingredient_alias SELECT 'aubergine', id FROM ingredient WHERE name = 'eggplant'");
    let mut nightly = kitchen.program(&["nightly.sh"]);
    let said = nightly.env("QUEUE_RETRY_FAILED", "true").output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("2 failed tasks sent back"), "{said}");
    let moved = kitchen.ask(
        "SELECT DISTINCT state, note, note_by = session_user, attempts, resolved_by IS NULL, resolved_at IS NULL,
                         worker IS NULL
           FROM gristmill.tasks",
    );
    assert_eq!(moved, "pending|Retry requested by nightly workflow|t|0|t|t|t");
    kitchen.run(&["worker.py"]);
    assert_eq!(kitchen.ask("SELECT failed, total FROM gristmill.stats()"), "1|1");
    assert_eq!(
        kitchen.ask("SELECT i.name FROM recipe_line l JOIN ingredient i ON i.id = l.ingredient"),
        "eggplant"
    );
}

#[test]
fn what_a_killed_worker_held_is_taken_back_by_the_workflow() {
    let kitchen = Kitchen::new();
    kitchen.put("scraper", &["1 egg", "2 eggs", "3 eggs"]);
    let mut victim = kitchen.start_and_hold(&["worker.py", "--slow", "600", "--lease", "1"], 3);
    victim.kill().unwrap();
    victim.wait().unwrap();
    // Its lease runs out by the server's time, and nobody claims meanwhile.
    kitchen.ask("SELECT pg_sleep(1.1)");
    let said = kitchen.run(&["nightly.sh"]);
    assert!(said.contains("3 taken back from crashed workers"), "{said}");
    assert_eq!(kitchen.ask("SELECT ready, processing FROM gristmill.stats()"), "3|0");
}

#[test]
fn what_was_claimed_more_than_five_times_is_listed() {
    let kitchen = Kitchen::new();
    kitchen.put("scraper", &["a little love", "1 pinch of saffron"]);
    for night in 1..=6 {
        kitchen.run(&["worker.py"]);
        let mut nightly = kitchen.program(&["nightly.sh"]);
        let said = nightly.env("QUEUE_RETRY_FAILED", "true").output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let (_, list) = said.split_once("claimed more than 5 times:").unwrap();
        let rows = list.lines().filter(|line| line.contains("nightly workflow")).count();
        assert_eq!(rows, if night > 5 { 2 } else { 0 }, "night {night}: {said}");
    }
}

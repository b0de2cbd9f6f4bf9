//! What a killed worker held comes back when its lease is over, not before,
//! and its late word counts for nothing.

use crate::kitchen::Kitchen;

#[test]
fn a_killed_workers_lines_come_back_after_180_seconds() {
    let kitchen = Kitchen::new();
    kitchen.put("scraper", &["1 egg", "2 eggs", "3 eggs"]);
    // It says nothing of a lease: 180 seconds are the claim's own.
    let mut victim = kitchen.start_and_hold(&["worker.py", "--slow", "600"], 3);
    victim.kill().unwrap();
    victim.wait().unwrap();
    let back = |seconds: u32| {
        kitchen.ask(&format!(
            "SELECT taken FROM gristmill.expire(NULL, 99, NULL, 10,
                        clock_timestamp() + interval '{seconds} seconds')"
        ))
    };
    assert_eq!(back(100), "0", "the lease is not over");
    assert_eq!(back(181), "3");
    let said = kitchen.run(&["worker.sh", "scraper"]);
    assert_eq!(said.lines().count(), 3, "{said}");
    assert_eq!(kitchen.ask("SELECT total FROM gristmill.stats()"), "0");
}

#[test]
fn a_claim_by_itself_takes_back_what_a_killed_worker_held() {
    let kitchen = Kitchen::new();
    kitchen.put("scraper", &["1 egg", "2 eggs"]);
    let mut victim = kitchen.start_and_hold(&["worker.py", "--slow", "600", "--lease", "1"], 2);
    victim.kill().unwrap();
    victim.wait().unwrap();
    let mut said = String::new();
    while said.lines().count() < 2 {
        said += &kitchen.run(&["worker.py"]);
        said += "\n";
        said = said.trim_start().to_owned();
    }
    assert_eq!(kitchen.ask("SELECT count(*) FROM recipe_line WHERE ingredient IS NOT NULL"), "2");
    assert_eq!(kitchen.ask("SELECT total FROM gristmill.stats()"), "0");
}

#[test]
fn a_worker_that_lost_its_lease_writes_nothing() {
    let kitchen = Kitchen::new();
    kitchen.put("scraper", &["1 egg"]);
    // Two claims of one task, the second after the first one's lease: what the
    // first worker then writes must not stand.
    let first = kitchen.ask("SELECT id, token FROM gristmill.claim('ingredient-match', 1, 180)");
    let second = kitchen.ask(
        "SELECT id FROM gristmill.claim_tasks('ingredient-match', 1, 180000000, 'second', NULL,
                    gen_random_uuid(), p_now => clock_timestamp() + interval '181 seconds')",
    );
    let (id, stale) = first.split_once('|').unwrap();
    assert_eq!(second, id);
    let said = std::process::Command::new("psql")
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &kitchen.url()])
        .args(["-v", &format!("id={id}"), "-v", &format!("token={stale}"), "-v", "worker=late"])
        .args(["-v", "line_id=1", "-v", "ingredient=1", "-f", "sql/matched.sql"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout).trim(), "lease_lost");
    assert_eq!(kitchen.ask("SELECT count(*) FROM recipe_line WHERE ingredient IS NOT NULL"), "0");
}

#[test]
fn a_worker_keeps_its_lease_however_long_a_line_takes() {
    let kitchen = Kitchen::new();
    kitchen.put("scraper", &["1 egg", "2 eggs", "1 pinch of saffron"]);
    let words = ["worker.py", "--lease", "0.9", "--slow", "1.2"];
    let mut program = kitchen.program(&words);
    let mut slow = program.stdout(std::process::Stdio::piped()).spawn().unwrap();
    while kitchen.ask("SELECT processing FROM gristmill.stats()") != "3" {}
    // Another one looks all the while, and gets nothing.
    while slow.try_wait().unwrap().is_none() {
        assert_eq!(kitchen.run(&["worker.sh"]), "");
    }
    let said = String::from_utf8(slow.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(said.matches("(recorded)").count(), 2, "{said}");
    assert_eq!(kitchen.ask("SELECT state, claims FROM gristmill.tasks"), "failed|1");
}

#[test]
fn a_worker_that_is_told_to_stop_gives_its_lines_back() {
    for words in [&["worker.py", "--slow", "600"][..], &["worker.sh"]] {
        let kitchen = Kitchen::new();
        kitchen.put("scraper", &["1 egg", "2 eggs", "3 eggs"]);
        let mut program = kitchen.program(words);
        // The shell hears a signal when the command that it waits for has ended.
        let mut worker =
            program.env("SLOW_SECONDS", "2").stdout(std::process::Stdio::null()).spawn().unwrap();
        while kitchen.ask("SELECT processing FROM gristmill.stats()") != "3" {}
        let told = std::process::Command::new("kill")
            .args(["-TERM", &worker.id().to_string()])
            .status()
            .unwrap();
        assert!(told.success() && worker.wait().unwrap().success(), "{words:?}");
        assert_eq!(
            kitchen.ask("SELECT ready, processing, failed FROM gristmill.stats()"),
            "3|0|0",
            "{words:?}"
        );
        assert_eq!(kitchen.ask("SELECT max(attempts) FROM gristmill.tasks"), "0", "{words:?}");
    }
}

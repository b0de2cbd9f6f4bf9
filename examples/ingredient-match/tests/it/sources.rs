//! Workers that are not Rust share the work, each of its own source.

use crate::kitchen::Kitchen;

const LINES: [&str; 6] =
    ["2 eggs", "3 eggs", "1 can chopped tomatoes", "100 g butter", "2 onions", "1 kg flour"];

/// Of either kind, for each has a claim of its own: `claim.sql`, `claim_matched.sql`.
#[test]
fn a_worker_takes_only_lines_of_its_source() {
    for worker in [&["worker.sh", "manual"][..], &["worker.py", "--source", "manual"]] {
        let kitchen = Kitchen::new();
        assert_eq!(kitchen.put("scraper", &LINES), "6 lines put");
        assert_eq!(kitchen.put("manual", &["3 cloves garlic"]), "1 lines put");
        let said = kitchen.run(worker);
        assert!(said.contains("(recorded)") && said.lines().count() == 1, "{worker:?}: {said}");
        assert_eq!(kitchen.ask("SELECT ready, processing FROM gristmill.stats()"), "6|0");
        let matched = "SELECT i.name FROM recipe_line l JOIN ingredient i ON i.id = l.ingredient";
        assert_eq!(kitchen.ask(matched), "garlic");
    }
}

#[test]
fn a_worker_takes_lines_of_any_or_all_sources() {
    for (worker, left) in [
        (&["worker.py"][..], "0"),
        (&["worker.sh"], "0"),
        (&["worker.py", "--source", "manual", "--source", "scraper"], "0"),
        (&["worker.py", "--source", "nobody", "--source", "scraper"], "1"),
    ] {
        let kitchen = Kitchen::new();
        for source in ["scraper", "manual"] {
            kitchen.put(source, &[&format!("3 cloves garlic, {source}")]);
        }
        assert_eq!(kitchen.ask("SELECT total FROM gristmill.stats()"), "2");
        kitchen.run(worker);
        assert_eq!(kitchen.ask("SELECT total FROM gristmill.stats()"), left, "{worker:?}");
    }
}

#[test]
fn lines_are_put_once_however_often_they_come() {
    let kitchen = Kitchen::new();
    assert_eq!(kitchen.put("scraper", &LINES[..2]), "2 lines put");
    assert_eq!(kitchen.put("scraper", &LINES[..3]), "1 lines put");
    assert_eq!(kitchen.ask("SELECT total FROM gristmill.stats()"), "3");
}

#[test]
fn workers_side_by_side_match_each_line_once() {
    let kitchen = Kitchen::new();
    let lines: Vec<String> = (1..=60).map(|n| format!("{n} eggs")).collect();
    kitchen.put("scraper", &lines.iter().map(String::as_str).collect::<Vec<_>>());
    let workers: Vec<_> = [&["worker.py"][..], &["worker.py"], &["worker.sh", "scraper"]]
        .map(|words| kitchen.program(words).stdout(std::process::Stdio::piped()).spawn().unwrap())
        .into();
    let mut recorded = 0;
    for worker in workers {
        let output = worker.wait_with_output().unwrap();
        assert!(output.status.success());
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said.matches("(recorded)").count(), said.lines().count(), "{said}");
        recorded += said.lines().count();
    }
    assert_eq!(recorded, 60);
    assert_eq!(kitchen.ask("SELECT count(*) FROM recipe_line WHERE ingredient IS NOT NULL"), "60");
    assert_eq!(kitchen.ask("SELECT total FROM gristmill.stats()"), "0");
}

#[test]
fn a_line_nobody_knows_is_failed_with_its_words() {
    let kitchen = Kitchen::new();
    kitchen.put("scraper", &["1 pinch of saffron"]);
    kitchen.run(&["worker.py"]);
    let failed = "SELECT state, error, attempts FROM gristmill.tasks";
    assert_eq!(kitchen.ask(failed), "failed|no ingredient is called 'saffron'|1");
}

/// As whoever calls the functions through an RPC gateway: it may execute and nothing else.
#[test]
fn a_role_that_may_only_execute_works_and_reads_nothing() {
    let kitchen = Kitchen::new();
    kitchen.make_roles();
    kitchen.put("scraper", &["2 eggs"]);
    kitchen.ask(
        "DO $$BEGIN CREATE ROLE kitchen_rpc LOGIN PASSWORD 'secret'; EXCEPTION
             WHEN duplicate_object OR unique_violation THEN NULL; END$$;
         GRANT gristmill_work TO kitchen_rpc",
    );
    let url = kitchen.tcp_url_of("kitchen_rpc", "secret");
    let ask = |sql: &str| {
        let mut psql = std::process::Command::new("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &url, "-c", sql]);
        let asked = psql.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim().to_owned();
        asked.status.success().then(|| text(asked.stdout)).ok_or(text(asked.stderr))
    };
    let claimed =
        ask("SELECT id, token FROM gristmill.claim('ingredient-match', 1, 180, NULL, 'x')");
    let claimed = claimed.unwrap();
    let (id, token) = claimed.split_once('|').unwrap();
    for refused in [
        "SELECT * FROM gristmill.task",
        "DELETE FROM gristmill.task",
        "SELECT * FROM gristmill.tasks",
        "SELECT gristmill.retry(1, 'me')",
        "SELECT * FROM recipe_line",
    ] {
        let said = ask(refused).unwrap_err();
        assert!(said.contains("permission denied") || said.contains("does not exist"), "{said}");
    }
    // Nor has it another clock than the server's.
    let said = ask("SELECT gristmill.claim('ingredient-match', 1, now => now())").unwrap_err();
    assert!(said.contains("does not exist"), "{said}");
    assert_eq!(ask(&format!("SELECT gristmill.complete({id}, '{token}')")).unwrap(), "recorded");
}

//! Syncing: what is put, what is skipped, and what the database itself refuses.

use gristmill::port::{State, Unique};
use gristmill::sqlite::rusqlite::ErrorCode;

use crate::shop::{Shop, ran};

const DAY_1: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/day-1.json");
const DAY_2: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/day-2.json");

fn skipped_lines(stderr: &str) -> Vec<&str> {
    stderr.lines().filter(|line| line.contains("skipped duplicate")).collect()
}

#[test]
fn new_items_and_new_prices_become_tasks() {
    let shop = Shop::new();
    shop.ok(&["sync", DAY_1]);
    assert_eq!(shop.standing("PRICE_UPDATED"), (11, 0, 0));
    assert_eq!(shop.standing("NEW_ITEM"), (11, 0, 0));
    let keys: Vec<_> = shop.tasks("NEW_ITEM", State::Pending).into_iter().map(|t| t.key).collect();
    let expected: Vec<_> = (1001..=1011).map(|id| Some(id.to_string())).collect();
    assert_eq!(keys, expected, "one task an item, in the file's order");

    shop.ok(&["work", "--drain"]);
    let ran = shop.ok(&["sync", DAY_2]);
    assert!(ran.stdout.contains("12 items (1 new, 8 new prices), 9 tasks put"), "{ran:?}");
    assert_eq!(shop.standing("PRICE_UPDATED"), (8, 0, 0), "only where the price changed");
    assert_eq!(shop.standing("NEW_ITEM"), (1, 0, 0));
}

#[test]
fn the_queues_are_as_the_application_says() {
    let shop = Shop::new();
    let settings = |retries: &str, name: &str| {
        let mut program = shop.program(&["sync", DAY_1]);
        program.env("ITEM_SYNC_RETRIES", retries);
        assert!(ran(program).ok);
        let queues =
            shop.mill(|mill| async move { mill.inspect().queues().await.expect("queues") });
        queues.into_iter().find(|q| q.name.as_str() == name).expect(name).settings
    };
    let plain = settings("0", "PRICE_UPDATED");
    assert_eq!((plain.unique, plain.max_attempts), (Unique::Active, Some(1)));
    let bind = plain.bind.expect("a binding");
    assert_eq!((bind.table.as_str(), bind.column.as_str()), ("item", "id"));
    let retrying = settings("1", "price-trend");
    assert_eq!((retrying.unique, retrying.max_attempts), (Unique::Pending, Some(5)));
}

#[test]
fn syncing_twice_puts_nothing_twice_and_says_nothing() {
    let shop = Shop::new();
    let first = shop.ok(&["sync", DAY_1, "--debug"]);
    let second = shop.ok(&["sync", DAY_1, "--debug"]);
    assert!(second.stdout.contains("0 tasks put, 0 skipped"), "{second:?}");
    for ran in [first, second] {
        assert_eq!(skipped_lines(&ran.stderr), Vec::<&str>::new());
    }
    assert_eq!((shop.rows("item"), shop.rows("item_price")), (11, 11));
    assert_eq!((shop.standing("PRICE_UPDATED").0, shop.standing("NEW_ITEM").0), (11, 11));
}

#[test]
fn what_stands_already_is_skipped_with_one_line_and_both_counts() {
    let shop = Shop::new();
    shop.sync(&[(1, 100), (2, 100)]);
    let ran = shop.sync(&[(1, 110), (2, 120), (3, 130)]);
    let lines = skipped_lines(&ran.stderr);
    let [line] = lines.as_slice() else { panic!("one line, for one queue: {lines:?}") };
    for part in ["DEBUG", "PRICE_UPDATED", "skipped=2", "enqueued=1"] {
        assert!(line.contains(part), "{line}");
    }
    assert_eq!(shop.standing("PRICE_UPDATED"), (3, 0, 0));
    assert_eq!(shop.rows("item_price"), 5, "the prices themselves are all kept");

    shop.file("feed.json", &[(1, 140)]);
    assert_eq!(shop.ok(&["sync", "feed.json"]).stderr, "", "only --debug shows it");
}

#[test]
fn an_item_twice_in_one_chunk_is_one_task() {
    let shop = Shop::new();
    let ran = shop.sync(&[(1, 100), (1, 120), (2, 100)]);
    let lines = skipped_lines(&ran.stderr);
    assert!(matches!(lines.as_slice(), [line] if line.contains("skipped=1")), "{lines:?}");
    assert_eq!(shop.rows("item_price"), 3);
    assert_eq!((shop.standing("PRICE_UPDATED").0, shop.standing("NEW_ITEM").0), (2, 2));

    shop.file("feed.json", &[(3, 1), (3, 2), (3, 3)]);
    shop.ok(&["sync", "feed.json", "--chunk", "1"]);
    assert_eq!(shop.standing("PRICE_UPDATED").0, 3, "nor is it more over several chunks");
}

#[test]
fn the_database_itself_refuses_a_duplicate() {
    let shop = Shop::new();
    shop.sync(&[(1, 100)]);
    let mut db = shop.sql();
    let transaction = db.transaction().expect("a transaction");
    let insert = |place: i64| {
        let copy = "INSERT INTO gristmill_task
            (id, queue, key, place, unique_active, priority, run_at, created_at, encoding, payload)
            SELECT id + 1000 + ?1, queue, key, ?1, 1, priority, run_at, created_at, encoding, payload
              FROM gristmill_task WHERE id = (SELECT min(id) FROM gristmill_task)";
        transaction.execute(copy, [place])
    };
    for (place, what) in [(0, "a second one that waits"), (1, "one that runs beside it")] {
        let refused = insert(place).expect_err(what);
        assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::ConstraintViolation), "{what}");
        assert!(refused.to_string().contains("UNIQUE"), "{refused}");
    }
    assert_eq!(insert(2), Ok(1), "failed ones may stand beside it");
}

#[test]
fn an_unknown_file_or_form_is_told_and_puts_nothing() {
    let shop = Shop::new();
    std::fs::write(shop.path("object.json"), "{}").expect("a file");
    for (file, says) in [("missing.json", "missing.json"), ("object.json", "an array of items")] {
        let ran = shop.run(&["sync", file]);
        assert!(!ran.ok && ran.stderr.contains(says), "{ran:?}");
        assert!(!ran.stderr.contains("stand"), "there is nothing to complete: {ran:?}");
    }
    let ran = shop.run(&["--db", "files://spool", "sync", "missing.json"]);
    assert!(!ran.ok && ran.stderr.contains("in a SQLite file or in PostgreSQL"), "{ran:?}");
    assert!(!shop.path("spool").exists());
    assert_eq!((shop.rows("item"), shop.rows("gristmill_task")), (0, 0));
}

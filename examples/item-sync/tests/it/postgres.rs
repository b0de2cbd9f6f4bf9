//! The same application with its items and queues in PostgreSQL.

use gristmill::port::QueueStats;
use gristmill::{Mill, QueueName};
use gristmill_pgserver::{Database, Error, Server};

use crate::shop::{Ran, Shop};

const DAY_1: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/day-1.json");
const DAY_2: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/day-2.json");
const DAY_3: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/day-3.json");

/// Every trend with all that is kept of it, in words that both databases know.
const TRENDS: &str = "SELECT string_agg(trend, ', ') FROM (
    SELECT item_id || ' ' || direction || ' ' || prices || ' '
           || CAST(round(slope_cents * 1000) AS bigint) AS trend
      FROM item_trend ORDER BY item_id) AS trends";

/// A shop whose database is on a server.
struct Served {
    shop: Shop,
    database: Database,
}

impl Served {
    fn new() -> Self {
        let server = Server::shared().expect("PostgreSQL");
        let database = server.database("items", prepare).expect("a database");
        Served { shop: Shop::new(), database }
    }

    fn ok(&self, args: &[&str]) -> Ran {
        let url = self.database.url();
        let args: Vec<&str> = ["--db", &url].iter().chain(args).copied().collect();
        self.shop.ok(&args)
    }

    fn sync(&self, items: &[(i64, u32)]) -> Ran {
        self.shop.file("feed.json", items);
        self.ok(&["sync", "feed.json"])
    }

    fn ask(&self, sql: &str) -> String {
        self.database.psql(sql).expect(sql)
    }

    /// Pending, processing, failed.
    fn standing(&self, queue: &str) -> (u64, u64, u64) {
        let queue = QueueName::new(queue).expect("a name");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let stats: QueueStats = runtime.expect("a runtime").block_on(async {
            let mill = Mill::open(&self.database.url()).await.expect("a store");
            let stats = mill.inspect().queue(queue.as_str()).await.expect("stats");
            mill.close().await.expect("closed");
            stats
        });
        (stats.pending(), stats.processing, stats.failed)
    }
}

/// The queue's schema; the application makes its own tables.
fn prepare(url: &str) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let opened = runtime
        .map_err(|error| Error::new(error.to_string()))?
        .block_on(async { Mill::open(url).await?.close().await });
    opened.map_err(|error| Error::new(error.to_string()))
}

#[test]
fn a_sync_and_a_drain_leave_what_they_leave_in_sqlite() {
    let there = Served::new();
    let here = Shop::new();
    for day in [DAY_1, DAY_2, DAY_3] {
        for args in [&["sync", day][..], &["work", "--drain"]] {
            assert_eq!(there.ok(args).stdout, here.ok(args).stdout, "{args:?}");
        }
    }
    let trends: String = here.sql().query_row(TRENDS, [], |row| row.get(0)).expect("trends");
    assert_eq!(there.ask(TRENDS), trends);
    assert_eq!(there.ok(&["show"]).stdout, here.ok(&["show"]).stdout);
    assert_eq!(there.shop.notices().len(), here.notices().len());
}

#[test]
fn syncing_twice_puts_nothing_twice() {
    let served = Served::new();
    served.ok(&["sync", DAY_1]);
    let again = served.ok(&["sync", DAY_1]);
    assert!(again.stdout.contains("0 tasks put, 0 skipped"), "{again:?}");
    assert_eq!(served.standing("PRICE_UPDATED"), (11, 0, 0));
    let changed = served.sync(&[(1001, 1), (1002, 2), (9, 3)]);
    assert!(changed.stdout.contains("2 tasks put, 2 skipped"), "{changed:?}");
}

#[test]
fn a_chunk_stands_whole_with_its_tasks_or_not_at_all() {
    let served = Served::new();
    // The second chunk cannot be read: the first one stands, with its tasks.
    let feed = r#"[{"id":1,"name":"a","price_cents":1},{"id":2,"name":"b","price_cents":1},
                   {"id":3,"name":"c","price_cents":1},{"id":4}]"#;
    std::fs::write(served.shop.path("feed.json"), feed).expect("a file");
    let url = served.database.url();
    let ran = served.shop.run(&["--db", &url, "sync", "feed.json", "--chunk", "2"]);
    assert!(!ran.ok && ran.stderr.contains("2 items in 1 chunks stand"), "{ran:?}");
    assert_eq!(served.ask("SELECT count(*) FROM item"), "2");
    assert_eq!(served.standing("NEW_ITEM"), (2, 0, 0));
}

#[test]
fn a_deleted_item_takes_its_tasks_along_whoever_deletes() {
    let served = Served::new();
    served.sync(&[(1, 100), (2, 100), (3, 100)]);
    served.ok(&["delete", "1"]);
    assert_eq!(served.standing("PRICE_UPDATED").0, 2);
    served.ask("DELETE FROM item WHERE id = 2");
    assert_eq!((served.standing("PRICE_UPDATED").0, served.standing("NEW_ITEM").0), (1, 1));
    served.ask("TRUNCATE item CASCADE");
    assert_eq!((served.standing("PRICE_UPDATED").0, served.standing("NEW_ITEM").0), (0, 0));
}

#[test]
fn a_failed_notice_waits_for_a_person_and_its_follow_ups_are_done() {
    let served = Served::new();
    served.sync(&[(1, 100), (2, 100)]);
    served.ok(&["work", "--drain", "--webhook", "http://127.0.0.1:9/"]);
    assert_eq!(served.standing("NEW_ITEM"), (0, 0, 2));
    assert_eq!(served.standing("price-trend"), (0, 0, 0));
    let retried = "SELECT gristmill.retry_failed('NEW_ITEM', 'the webhook is back')";
    assert_eq!(served.ask(retried), "2");
    served.ok(&["work", "--drain"]);
    assert_eq!((served.standing("NEW_ITEM"), served.shop.notices().len()), ((0, 0, 0), 2));
}

/// Syncs beside two workers, item by item the same ones: whatever each sync
/// commits, a trend that is computed after it has seen.
fn every_change_is_seen_by_its_trend(items: i64, syncs: u32) {
    let served = Served::new();
    let prices = |round: u32| -> Vec<(i64, u32)> {
        (1..=items)
            .map(|id| (id, 100 + round * 7 + u32::try_from(id % 5).expect("small")))
            .collect()
    };
    served.sync(&prices(0));
    let url = served.database.url();
    let workers = [(); 2].map(|()| served.shop.start(&["--db", &url, "work"]));
    for round in 1..=syncs {
        served.sync(&prices(round));
    }
    for mut worker in workers {
        let stop = std::process::Command::new("kill").arg(worker.id().to_string()).status();
        assert!(stop.expect("kill runs").success());
        let ended = worker.end();
        assert!(ended.ok, "{ended:?}");
    }
    served.ok(&["work", "--drain"]);
    let missed = "SELECT count(*) FROM item i
                   LEFT JOIN item_trend t ON t.item_id = i.id
                  WHERE t.prices IS DISTINCT FROM
                        (SELECT least(count(*), 10) FROM item_price p WHERE p.item_id = i.id)";
    assert_eq!(served.ask(missed), "0", "of {items} items, changed {syncs} times");
}

#[test]
fn a_sync_beside_workers_loses_no_change() {
    every_change_is_seen_by_its_trend(100, 4);
}

#[test]
#[ignore = "twenty runs of two thousand items"]
fn long_syncs_beside_workers_lose_no_change() {
    for _ in 0..20 {
        every_change_is_seen_by_its_trend(2_000, 8);
    }
}

//! What SQLite will do for each statement: nothing may grow with what waits.

use rusqlite::Connection;

use crate::migration;
use crate::sql::{Sql, bind};

fn schema() -> Connection {
    let conn = Connection::open_in_memory().expect("a database");
    let now = gristmill_core::Timestamp::EPOCH;
    migration::migrate(&conn, std::path::Path::new("memory"), now, "id").expect("migrated");
    conn
}

fn plan(conn: &Connection, sql: Sql) -> String {
    let text = format!("EXPLAIN QUERY PLAN {}", sql.text());
    let mut statement =
        conn.prepare(&text).unwrap_or_else(|e| panic!("{sql:?} does not fit the schema: {e}"));
    let count = statement.parameter_count();
    for n in 1..=count {
        statement.raw_bind_parameter(n, 1).expect("bound");
    }
    let mut rows = statement.raw_query();
    let mut lines = Vec::new();
    while let Some(row) = rows.next().expect("a plan") {
        lines.push(row.get::<_, String>(3).expect("a line"));
    }
    lines.join("\n")
}

/// Statements that read a whole table on purpose: tables of a few rows, pages
/// that a `LIMIT` bounds, stretches of an index that kept counts bound, all leases after the clock went back, all blocked tasks
/// (by a reader), and the doctor's.
fn may_scan(sql: Sql) -> bool {
    matches!(
        sql,
        Sql::QueueAll
            | Sql::QueueNames
            | Sql::QueueLastNumber
            | Sql::CountAll
            | Sql::LeaseAll
            | Sql::LeaseClamp
            | Sql::UnblockMissed
            | Sql::ScheduleAll
            | Sql::DocumentForget
            | Sql::DocumentClamp
            | Sql::SubjectTable
            | Sql::SubjectColumn
            | Sql::SubjectTriggers
            | Sql::CheckCounts
            | Sql::CheckLeases
            | Sql::CheckProcessing
            | Sql::CheckSchema
            | Sql::CheckTasks
            | Sql::LevelIdsOldest
            | Sql::LevelIdsNewest
            | Sql::BlockedIds
            | Sql::FailedIds
    )
}

/// What is bound and read by names is what SQLite makes of the texts.
#[test]
fn parameters_and_columns_are_those_of_the_statements() {
    let conn = schema();
    for sql in Sql::ALL {
        let statement = conn.prepare(sql.text()).unwrap();
        let given = (1..=statement.parameter_count()).map(|n| statement.parameter_name(n));
        let wanted = sql.given().iter().map(|name| format!(":{name}"));
        let (given, wanted): (Vec<_>, Vec<_>) =
            (given.map(Option::unwrap).collect(), wanted.collect());
        assert_eq!(given, wanted, "{sql:?}");
        if !sql.columns().is_empty() {
            let columns: Vec<_> = statement.column_names().collect();
            assert_eq!(columns, sql.columns(), "{sql:?}");
        }
    }
}

#[test]
fn no_statement_scans_a_table_or_sorts() {
    no_scans(&schema());
}

fn no_scans(conn: &Connection) {
    for sql in Sql::ALL {
        // A row of constants is no table, and neither are eight, nor are the steps of a walk
        // (`named n`), each of which looks at an index.
        let no_tables = ["SCAN CONSTANT ROW", "SCAN 8-ROW VALUES CLAUSE", "SCAN n"];
        let whole = plan(conn, *sql);
        let lines = whole.lines().filter(|line| !no_tables.contains(&line.trim()));
        let plan = lines.collect::<Vec<_>>().join("\n");
        let grows = plan.contains("SCAN") || plan.contains("TEMP B-TREE");
        assert!(may_scan(*sql) || !grows, "{sql:?}:\n{plan}");
    }
}

#[test]
fn a_claim_reads_the_front_of_its_level_and_no_more() {
    let conn = schema();
    let front = plan(&conn, Sql::ClaimFront);
    assert!(front.contains("queue=? AND priority=? AND run_at<?"), "{front}");
    let of_source = plan(&conn, Sql::ClaimFrontSource);
    assert!(of_source.contains("queue=? AND source=? AND priority=? AND run_at<?"), "{of_source}");
    let taken = plan(&conn, Sql::ReadyLeaveFront);
    assert!(taken.contains("(run_at,id)"), "{taken}");
}

/// What a statement costs SQLite, in steps of its machine.
fn steps(conn: &Connection, sql: Sql, given: impl rusqlite::Params) -> i32 {
    let mut statement = conn.prepare(sql.text()).expect("prepared");
    let mut rows = statement.query(given).expect("bound");
    while rows.next().expect("a row").is_some() {}
    drop(rows);
    statement.get_status(rusqlite::StatementStatus::VmStep)
}

/// A file whose statistics were gathered when it held one task, as the end of a
/// process does it, and which holds many now.
async fn grown(tasks: usize) -> (tempfile::TempDir, Connection) {
    use gristmill_core::{Declaration, NewTask, Payload, PutRequest, QueueName, Store};
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("grown.db");
    let store = crate::SqliteStore::open(&path, crate::Options::default()).expect("a store");
    let queue = QueueName::new("q").expect("a name");
    store.declare_queue(Declaration::new(queue.clone())).await.expect("declared");
    let conn = Connection::open(&path).expect("a connection");
    for (from, to) in [(0, 1), (1, tasks)] {
        let tasks = (from..to).map(|n| NewTask {
            key: (n % 2 == 0).then(|| n.to_string()),
            ..NewTask::new(Payload::json("1"))
        });
        let request = PutRequest { queue: queue.clone(), tasks: tasks.collect(), atomic: false };
        let _ = store.put(request).await.expect("put");
        if from == 0 {
            conn.execute_batch("ANALYZE").expect("analysed");
        }
    }
    store.close().await.expect("closed");
    drop(conn);
    // The next process: it opens the file as every store does.
    let conn = crate::open::writer(&path, &crate::Options::default()).expect("a connection");
    (folder, conn)
}

#[tokio::test]
async fn nothing_costs_more_whatever_the_statistics_say() {
    let (_small, few) = grown(250).await;
    let (_large, many) = grown(1_000).await;
    no_scans(&many);
    for sql in [Sql::CheckCounts, Sql::CheckLeases, Sql::CheckProcessing, Sql::CheckTasks] {
        let (few, many) = (steps(&few, sql, []), steps(&many, sql, []));
        assert!(many < 6 * few.max(100), "{sql:?}: {few} steps for 250 tasks, {many} for 1,000");
    }
}

/// A file with two failed tasks of the first queue, `others` failed ones of the
/// second between them, and as many that wait; with the queues' numbers.
async fn failed(others: usize) -> (tempfile::TempDir, Connection, Vec<u32>) {
    use gristmill_conformance::short::{name, request, settlements, task};
    use gristmill_core::{ClaimRequest, Declaration, Outcome, Store, Token, WorkerId};
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("failed.db");
    let store = crate::SqliteStore::open(&path, crate::Options::default()).expect("a store");
    for queue in ["q", "r"] {
        store.declare_queue(Declaration::new(name(queue))).await.expect("declared");
    }
    for (queue, tasks) in [("q", 1), ("r", others), ("q", 1)] {
        let _ = store.put(request(queue, vec![task("1"); tasks])).await.expect("put");
        let claim = ClaimRequest {
            queue: name(queue),
            max: tasks,
            lease: None,
            worker: WorkerId::new("w").expect("a name"),
            source: None,
            token: Token::random().expect("random"),
        };
        let claim = store.claim(claim).await.expect("claimed");
        let outcome = Outcome::Fail("never".to_owned());
        store.settle(settlements(&claim, &outcome)).await.expect("settled");
        let _ = store.put(request("r", vec![task("1"); tasks])).await.expect("put");
    }
    let numbers = store.stats().await.expect("stats").iter().map(|queue| queue.number).collect();
    store.close().await.expect("closed");
    let conn = crate::open::writer(&path, &crate::Options::default()).expect("a connection");
    (folder, conn, numbers)
}

/// However many tasks failed, and however many wait: a page of the failed list
/// costs what stands on it, of one queue and of all. A plan does not tell, for who
/// walks along all ids to find a queue's few is said to search, too.
#[tokio::test]
async fn a_page_of_the_failed_list_costs_what_stands_on_it() {
    let (_small, few, queues) = failed(100).await;
    let (_large, many, _) = failed(800).await;
    let pages = [
        (Sql::ListFailedQueueOldest, Sql::ListFailedOldest, 0),
        (Sql::ListFailedQueueNewest, Sql::ListFailedNewest, i64::MAX),
    ];
    for (of_queue, of_all, from) in pages {
        for queue in &queues {
            let page = |conn: &Connection| {
                steps(conn, of_queue, bind!(ListFailedQueueOldest { from, queue, limit: 10 }))
            };
            assert_eq!(page(&few), page(&many), "{of_queue:?} of {queue}");
        }
        let page =
            |conn: &Connection| steps(conn, of_all, bind!(ListFailedOldest { from, limit: 10 }));
        assert_eq!(page(&few), page(&many), "{of_all:?}");
    }
}

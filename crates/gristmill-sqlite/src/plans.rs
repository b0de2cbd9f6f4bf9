//! What SQLite will do for each statement: nothing may grow with what waits.

use rusqlite::Connection;

use crate::migration;
use crate::sql::Sql;

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
/// that a `LIMIT` bounds, and the doctor's.
fn may_scan(sql: Sql) -> bool {
    matches!(
        sql,
        Sql::QueueAll
            | Sql::QueueNames
            | Sql::QueueLastNumber
            | Sql::CountAll
            | Sql::LeaseAll
            | Sql::ScheduleAll
            | Sql::WorkerAll
            | Sql::SweepWorkers
            | Sql::SubjectTable
            | Sql::SubjectColumn
            | Sql::SubjectTriggers
            | Sql::CheckCounts
            | Sql::CheckLeases
            | Sql::CheckProcessing
            | Sql::CheckTasks
    )
}

#[test]
fn no_statement_scans_a_table_or_sorts() {
    let conn = schema();
    for sql in Sql::ALL {
        // The row of constants is no table.
        let plan = plan(&conn, *sql).replace("SCAN CONSTANT ROW", "");
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

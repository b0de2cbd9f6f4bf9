//! What the server's own numbers and settings say.

use gristmill_core::Diagnosis;

/// A transaction that is open for longer holds vacuum up noticeably.
const LONG_SECONDS: f64 = 60.0;
/// One with puts in it keeps those who wait for its keys after this long.
const PUTS_SECONDS: f64 = 10.0;
/// ... and for so long that the tables will have grown by much.
const VERY_LONG_SECONDS: f64 = 3600.0;
/// A slot that is so many transactions behind is forgotten rather than slow.
const SLOT_AGE: i32 = 10_000_000;
/// Dead rows worth a word: this many, and several for each that lives.
const DEAD_ROWS: i64 = 100_000;
/// A table that holds next to nothing and is still this large.
const EMPTY_BYTES: i64 = 1 << 30;
/// The server stops taking writes at about 2.1 thousand million.
const WRAPAROUND: i64 = 1_000_000_000;
/// The oldest server whose syntax is known to do.
const OLDEST: i64 = 140_000;

/// A setting that is not safe.
pub(super) fn setting(name: &str, value: &str) -> Option<Diagnosis> {
    let off = value == "off";
    let (code, found, remedy) = match name {
        "fsync" | "full_page_writes" if off => (
            "unsafe_setting",
            "a power cut may damage the database and lose acknowledged tasks",
            "turn it on in postgresql.conf and reload",
        ),
        "synchronous_commit" if off => (
            "unsafe_setting",
            "a power cut loses the last acknowledged puts and settlements",
            "leave it on, and declare single queues 'durability: relaxed' instead",
        ),
        "autovacuum" | "track_counts" if off => (
            "unsafe_setting",
            "dead rows are never removed: the tables grow for ever, and claims become slower",
            "turn it on in postgresql.conf and reload",
        ),
        "zero_damaged_pages" | "ignore_checksum_failure" if !off => (
            "unsafe_setting",
            "damaged data is passed over in silence",
            "turn it off once what can be saved has been saved",
        ),
        "server_version_num" if value.parse().is_ok_and(|number: i64| number < OLDEST) => (
            "old_server",
            "nobody tests Gristmill on a PostgreSQL older than 14",
            "upgrade the server",
        ),
        _ => return None,
    };
    Some(Diagnosis::grave(code, format!("{name} is {value}: {found}"), remedy))
}

/// Somebody who keeps dead rows from being removed.
pub(super) struct Holder {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) seconds: Option<f64>,
    pub(super) who: String,
    pub(super) program: String,
    pub(super) state: String,
    pub(super) age: i32,
    /// It has put tasks, or settled some.
    pub(super) is_ours: bool,
}

pub(super) fn holder(holder: &Holder) -> Option<Diagnosis> {
    let Holder { kind, name, who, program, state, .. } = holder;
    let Some(seconds) = holder.seconds else {
        return (kind == "slot" && holder.age > SLOT_AGE).then(|| {
            Diagnosis::grave(
                "oldest_transaction",
                format!("replication slot {name} ({state}) is {} transactions behind", holder.age),
                format!(
                    "dead rows stay until it catches up: bring its reader back, or drop it with \
                     pg_drop_replication_slot('{name}')"
                ),
            )
        });
    };
    if holder.is_ours && seconds >= PUTS_SECONDS {
        return Some(Diagnosis::note(
            "open_puts",
            open_puts(holder, seconds),
            format!(
                "what it put does not run before it commits, and puts of the same keys wait for it: \
             look at that program, or end it with pg_terminate_backend({name})"
            ),
        ));
    }
    if seconds < LONG_SECONDS {
        return None;
    }
    let open = format!("{seconds:.0} s");
    let (found, remedy) = if kind == "prepared" {
        (
            format!("prepared transaction {name} of {who} has stood for {open}"),
            format!("dead rows stay until it ends: COMMIT PREPARED or ROLLBACK PREPARED '{name}'"),
        )
    } else {
        (
            format!(
                "a transaction of {who} ({program}, process {name}, {state}) is open for {open}"
            ),
            format!(
                "dead rows stay until it ends, and claims walk over them: look at that program, \
                 or end it with pg_terminate_backend({name})"
            ),
        )
    };
    let make = if seconds < VERY_LONG_SECONDS { Diagnosis::note } else { Diagnosis::grave };
    Some(make("oldest_transaction", found, remedy))
}

fn open_puts(holder: &Holder, seconds: f64) -> String {
    let Holder { name, who, program, state, .. } = holder;
    format!(
        "a transaction of {who} ({program}, process {name}, {state}) with puts or settlements in \
         it is open for {seconds:.0} s"
    )
}

/// Transactions with puts in them that are open for long, in words.
pub(super) fn open_for_long(holder: &Holder) -> Option<String> {
    let seconds = holder.seconds.filter(|seconds| *seconds >= PUTS_SECONDS)?;
    holder.is_ours.then(|| open_puts(holder, seconds))
}

/// A table of the store in numbers.
pub(super) struct Table {
    pub(super) name: String,
    pub(super) live: i64,
    pub(super) dead: i64,
    pub(super) bytes: i64,
    /// Seconds since the last vacuum.
    pub(super) vacuumed: Option<f64>,
}

pub(super) fn table(table: &Table) -> Option<Diagnosis> {
    let Table { name, live, dead, bytes, .. } = table;
    let vacuumed = match table.vacuumed {
        Some(seconds) => format!("the last vacuum was {seconds:.0} s ago"),
        None => "no vacuum was ever done".to_owned(),
    };
    if *dead > DEAD_ROWS && *dead > 5 * live {
        return Some(Diagnosis::note(
            "bloat",
            format!("table {name} has {dead} dead rows and {live} that live; {vacuumed}"),
            "see whether a long transaction holds vacuum up or autovacuum is too slow, then VACUUM it",
        ));
    }
    if *bytes > EMPTY_BYTES && live.saturating_mul(10_000) < *bytes {
        return Some(Diagnosis::note(
            "bloat",
            format!("table {name} takes {} MiB for {live} rows; {vacuumed}", bytes >> 20),
            "the room is used again; to give it back, VACUUM FULL or pg_repack it in a quiet hour",
        ));
    }
    if name == "delta" && *live > DEAD_ROWS {
        return Some(Diagnosis::note(
            "unfolded_counts",
            format!("{live} changes of counts wait to be added up, so every 'stats' reads them"),
            "run a worker or 'gristmill up': any Gristmill process that stays adds them up",
        ));
    }
    None
}

/// What runs out.
pub(super) fn load(used: i64, most: i64, notifications: f64, age: i64) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    if used * 10 >= most * 9 {
        found.push(Diagnosis::note(
            "connections",
            format!("{used} of the server's {most} connections are in use"),
            "put a pooler in front (?statement_mode=unnamed), or raise max_connections",
        ));
    }
    if notifications > 0.5 {
        found.push(Diagnosis::grave(
            "notifications",
            format!(
                "the notification queue is {:.0} % full; when it is full, commits fail",
                notifications * 100.0
            ),
            "a session that listens sits in a long transaction: end it",
        ));
    }
    if age > WRAPAROUND {
        found.push(Diagnosis::grave(
            "wraparound",
            format!("the oldest row of this database is {age} transactions old; at 2100000000 the server stops taking writes"),
            "VACUUM the database now, and end what holds vacuum up",
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_lose_work_are_grave() {
        for (name, bad, good) in [
            ("fsync", "off", "on"),
            ("full_page_writes", "off", "on"),
            ("synchronous_commit", "off", "on"),
            ("autovacuum", "off", "on"),
            ("zero_damaged_pages", "on", "off"),
            ("server_version_num", "130004", "150018"),
        ] {
            assert!(setting(name, bad).is_some_and(|d| d.grave && d.found.starts_with(name)));
            assert_eq!(setting(name, good), None);
        }
        assert_eq!(setting("synchronous_commit", "local"), None);
    }

    fn open_for(kind: &str, seconds: Option<f64>, age: i32) -> Option<Diagnosis> {
        let text = |text: &str| text.to_owned();
        let (name, who, program, state) = (text("7"), text("ada"), text("report"), text("active"));
        let is_ours = kind == "ours";
        holder(&Holder { kind: text(kind), name, seconds, who, program, state, age, is_ours })
    }

    #[test]
    fn long_transactions_are_told_by_their_length() {
        assert_eq!(open_for("transaction", Some(5.0), 5), None);
        let long = open_for("transaction", Some(90.0), 5).expect("a finding");
        assert!(!long.grave && long.found.contains("process 7") && long.found.contains("90 s"));
        assert!(open_for("transaction", Some(9_000.0), 5).is_some_and(|d| d.grave));
        assert!(open_for("prepared", Some(90.0), 5).is_some_and(|d| d.remedy.contains("PREPARED")));
        assert_eq!(open_for("ours", Some(5.0), 5), None);
        assert!(open_for("ours", Some(15.0), 5).is_some_and(|d| d.code == "open_puts"));
        assert_eq!(open_for("slot", None, 5), None);
        assert!(open_for("slot", None, 20_000_000).is_some_and(|d| d.grave));
    }

    fn look(name: &str, live: i64, dead: i64, bytes: i64) -> Option<&'static str> {
        table(&Table { name: name.to_owned(), live, dead, bytes, vacuumed: None }).map(|d| d.code)
    }

    #[test]
    fn bloat_is_many_dead_rows_or_much_room_for_few() {
        assert_eq!(look("task", 10, 90_000, 1 << 20), None);
        assert_eq!(look("task", 1_000_000, 500_000, 1 << 30), None);
        assert_eq!(look("task", 10_000, 500_000, 1 << 20), Some("bloat"));
        assert_eq!(look("lease", 10, 10, 2 << 30), Some("bloat"));
        assert_eq!(look("delta", 200_000, 0, 1 << 20), Some("unfolded_counts"));
    }

    #[test]
    fn what_runs_out_is_told_before_it_does() {
        assert!(load(50, 100, 0.1, 1_000).is_empty());
        let codes: Vec<_> = load(95, 100, 0.9, 1_500_000_000).iter().map(|d| d.code).collect();
        assert_eq!(codes, ["connections", "notifications", "wraparound"]);
    }
}

//! What became of the tables that queues are bound to.

use gristmill_core::Diagnosis;

/// A bound queue, as it was declared and as it is found.
#[derive(Debug, Default)]
pub(super) struct Bound {
    pub(super) queue: String,
    pub(super) table: String,
    pub(super) column: String,
    /// Why its subjects cannot be told: a word for a table that is gone, else a
    /// sentence.
    pub(super) fault: Option<String>,
    pub(super) table_now: Option<String>,
    pub(super) column_now: Option<String>,
    pub(super) renamed: bool,
    /// Triggers that are not there, or switched off.
    pub(super) missing: i64,
    /// Whether a row is found by an index.
    pub(super) indexed: bool,
    /// Whether the triggers may read the table.
    pub(super) readable: bool,
}

/// What is to be said of it: first what stops its work.
pub(super) fn told(bound: &Bound) -> Option<Diagnosis> {
    let Bound { queue, table, column, .. } = bound;
    let is = format!("queue '{queue}' is bound to table {table}");
    let grave = |found: String, remedy: &str| Some(Diagnosis::grave("subject_gone", found, remedy));
    match bound.fault.as_deref() {
        Some("subject_table_gone") => {
            return grave(
                format!("{is}, which does not exist"),
                "make the table again, or declare the queue without 'bind'; puts are refused until \
                 then",
            );
        }
        Some(fault) => {
            return grave(
                format!("{is}, but {fault}"),
                "puts are refused, and tasks stay when their row is deleted: declare the queue \
                 again with a table and column that are there",
            );
        }
        None => {}
    }
    if bound.missing > 0 {
        return grave(
            format!("{is}, where {} of its triggers are missing or switched off", bound.missing),
            "tasks stay for up to a minute when their row is deleted: declare the queue again, or \
             enable its triggers",
        );
    }
    if !bound.readable {
        return grave(
            format!("{is}, of which the owner of the queues may not read every row"),
            "tasks stay when their row is deleted: grant that role to read it, and BYPASSRLS where \
             the table has row security",
        );
    }
    if !bound.indexed {
        return Some(Diagnosis::note(
            "subject_unindexed",
            format!("{is}, where no index begins with column {column}"),
            "every put reads the whole table, and nobody looks for tasks whose row went with a \
             partition: give the column an index",
        ));
    }
    if bound.renamed {
        let now = |name: &Option<String>| name.clone().unwrap_or_default();
        return Some(Diagnosis::note(
            "subject_renamed",
            format!(
                "{is}, column {column}, which is called {}, column {} now",
                now(&bound.table_now),
                now(&bound.column_now)
            ),
            "the queue followed; say the new names where it is declared",
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Bound {
        let text = |text: &str| text.to_owned();
        let (queue, table, column) = (text("q"), text("item"), text("id"));
        Bound { queue, table, column, indexed: true, readable: true, ..Bound::default() }
    }

    #[test]
    fn what_is_whole_is_not_told() {
        assert_eq!(told(&whole()), None);
    }

    #[test]
    fn what_stops_puts_or_deletions_is_grave() {
        let gone = Bound { fault: Some("subject_table_gone".to_owned()), ..whole() };
        assert!(told(&gone).is_some_and(|d| d.grave && d.found.contains("does not exist")));
        let column = Bound { fault: Some("table item has no column id".to_owned()), ..whole() };
        assert!(told(&column).is_some_and(|d| d.grave && d.found.ends_with("no column id")));
        let off = Bound { missing: 2, ..whole() };
        assert!(told(&off).is_some_and(|d| d.grave && d.found.contains("2 of its triggers")));
        assert!(told(&Bound { readable: false, ..whole() }).is_some_and(|d| d.grave));
    }

    #[test]
    fn what_only_costs_is_a_note() {
        let slow = told(&Bound { indexed: false, ..whole() }).expect("a finding");
        assert!(!slow.grave && slow.code == "subject_unindexed");
        let column_now = Some("item_id".to_owned());
        let renamed = told(&Bound { renamed: true, column_now, ..whole() }).expect("a finding");
        assert!(!renamed.grave && renamed.found.contains("column item_id now"));
    }
}

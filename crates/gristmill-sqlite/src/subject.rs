//! Bound subjects: the application's rows that a queue's tasks are about.
//!
//! Triggers on the application's table delete the tasks of a deleted subject,
//! whoever deletes it. They are the only statements that hold names of the
//! application, so they are templates, and the names are quoted here and
//! nowhere else. One case SQLite keeps from triggers: a row that `REPLACE`
//! pushes out fires them only where `PRAGMA recursive_triggers` is on.

use gristmill_core::{Binding, Queue, QueueName, Refusal, Result, StoreError};
use gristmill_text::statement;
use rusqlite::{OptionalExtension, params};

use crate::db::Db;
use crate::errors::fault;
use crate::sql::{Sql, at, bind};
use crate::write::Write;

const TRIGGER: &str = statement(include_str!("sql/subject.sql"), "subject_trigger");
const DROP: &str = statement(include_str!("sql/subject.sql"), "subject_drop");
const EXISTS: &str = statement(include_str!("sql/subject.sql"), "subject_exists");
const SPELLING: &str = statement(include_str!("sql/subject.sql"), "subject_spelling");

impl Write<'_, '_> {
    /// Refuses a binding to what is not there.
    pub(crate) fn check_binding(&self, queue: &QueueName, bind: &Binding) -> Result<()> {
        let Binding { table, column } = bind;
        if !table_exists(self.db, table)? {
            return Err(StoreError::invalid(format!(
                "queue '{queue}': bind: there is no table '{table}' in this file"
            )));
        }
        if !self.db.any(Sql::SubjectColumn, bind!(SubjectColumn { table, column }))? {
            return Err(StoreError::invalid(format!(
                "queue '{queue}': bind: table '{table}' has no column '{column}'"
            )));
        }
        Ok(())
    }

    /// Makes the triggers say what the settings say.
    pub(crate) fn rebind(&mut self, queue: &Queue) -> Result<()> {
        let mut script = String::new();
        for trigger in triggers(queue.number) {
            script.push_str(&DROP.replace("{trigger}", &quoted(&trigger)));
        }
        if let Some(bind) = &queue.settings.bind {
            let [on_delete, on_update] = triggers(queue.number);
            let column = quoted(&bind.column);
            let changed = format!("UPDATE OF {column}");
            for (trigger, event) in [(on_delete, "DELETE"), (on_update, changed.as_str())] {
                let text = TRIGGER
                    .replace("{trigger}", &quoted(&trigger))
                    .replace("{event}", event)
                    .replace("{table}", &when(&bind.table, &column, event))
                    .replace("{column}", &column)
                    .replace("{queue}", &queue.number.to_string());
                script.push_str(&text);
            }
        }
        self.db.conn().execute_batch(&script).map_err(fault)?;
        self.known.bound.insert(queue.number);
        Ok(())
    }

    /// Why this task cannot be put on a bound queue, if so.
    pub(crate) fn subject_fault(
        &mut self,
        queue: &Queue,
        key: Option<&str>,
    ) -> Result<Option<Refusal>> {
        let Some(bind) = &queue.settings.bind else {
            return Ok(None);
        };
        let Some(key) = key else {
            return Ok(Some(Refusal::Invalid(format!(
                "the queue is bound to {}.{}: a task needs a key that names its row",
                bind.table, bind.column
            ))));
        };
        if !self.known.bound.contains(&queue.number) {
            if !table_exists(self.db, &bind.table)? {
                return Ok(Some(Refusal::SubjectTableGone { table: bind.table.clone() }));
            }
            // A table that was dropped and made again lost its triggers.
            if !is_bound(self.db, queue)? {
                self.rebind(queue)?;
            }
            self.known.bound.insert(queue.number);
        }
        let text = EXISTS
            .replace("{table}", &quoted(&bind.table))
            .replace("{column}", &quoted(&bind.column));
        let stands = self
            .db
            .conn()
            .prepare_cached(&text)
            .and_then(|mut statement| statement.exists(params![key]));
        match stands {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some(Refusal::NoSuchSubject {
                table: bind.table.clone(),
                column: bind.column.clone(),
                key: key.to_owned(),
                spelling: self.spelling(bind, key)?,
            })),
            Err(_) if !table_exists(self.db, &bind.table)? => {
                Ok(Some(Refusal::SubjectTableGone { table: bind.table.clone() }))
            }
            Err(error) => Err(fault(error)),
        }
    }
}

impl Write<'_, '_> {
    /// How the column writes the value that a key means, where a row has it.
    fn spelling(&self, bind: &Binding, key: &str) -> Result<Option<String>> {
        let text = SPELLING
            .replace("{table}", &quoted(&bind.table))
            .replace("{column}", &quoted(&bind.column));
        let found = self
            .db
            .conn()
            .prepare_cached(&text)
            .and_then(|mut statement| statement.query_row(params![key], |row| row.get(0)))
            .optional();
        found.map_err(fault)
    }
}

/// Whether both triggers of a bound queue stand on its table.
pub(crate) fn is_bound(db: &Db<'_>, queue: &Queue) -> Result<bool> {
    let Some(bind) = &queue.settings.bind else {
        return Ok(true);
    };
    let [on_delete, on_update] = triggers(queue.number);
    let found: Option<i64> = db.one(
        Sql::SubjectTriggers,
        bind!(SubjectTriggers { deleted: on_delete, updated: on_update, table: bind.table }),
        |row| row.get(at!(SubjectTriggers.standing)),
    )?;
    Ok(found == Some(2))
}

/// Whether the application's table is there.
pub(crate) fn table_exists(db: &Db<'_>, table: &str) -> Result<bool> {
    db.any(Sql::SubjectTable, bind!(SubjectTable { name: table }))
}

fn triggers(number: u32) -> [String; 2] {
    [format!("gristmill_subject_{number}_deleted"), format!("gristmill_subject_{number}_changed")]
}

/// The table, and for a change of the column the condition that it changed.
fn when(table: &str, column: &str, event: &str) -> String {
    let table = quoted(table);
    if event == "DELETE" { table } else { format!("{table} WHEN OLD.{column} IS NOT NEW.{column}") }
}

/// An identifier of the application, safe within a statement.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_quotes() {
        assert_eq!(quoted("item"), "\"item\"");
        assert_eq!(quoted("a\"; x"), "\"a\"\"; x\"");
    }
}

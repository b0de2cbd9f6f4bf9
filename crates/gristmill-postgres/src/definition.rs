//! What stands in the schema besides tables: functions, views and triggers. They
//! are not steps that run once, but are made again when their text is another one
//! than the one that made them.
//!
//! A change that programs of the version before cannot live with (a function they
//! call takes other arguments or answers other columns) comes with a step, even an
//! empty one: then they refuse to open the store. Everything else they use as it is.

use std::collections::HashMap;
use std::sync::LazyLock;

use gristmill_core::Result;
use tokio_postgres::Row;

use crate::answer::column;
use crate::connection::in_schema;
use crate::migration::checksum;
use crate::sql::at;

/// Their texts, in the order in which they can be made.
const FILES: &[&str] = &[
    include_str!("sql/function/policy.sql"),
    include_str!("sql/function/put.sql"),
    include_str!("sql/function/moves.sql"),
    include_str!("sql/function/claim.sql"),
    include_str!("sql/function/settle.sql"),
    include_str!("sql/function/ending.sql"),
    include_str!("sql/function/watch.sql"),
    include_str!("sql/function/list.sql"),
    include_str!("sql/function/subject.sql"),
    include_str!("sql/function/surface.sql"),
    include_str!("sql/function/import.sql"),
    include_str!("sql/function/arguments.sql"),
    include_str!("sql/function/queues.sql"),
    include_str!("sql/function/operators.sql"),
    include_str!("sql/function/schedules.sql"),
    include_str!("sql/function/maintain.sql"),
];

/// What follows CREATE for a kind of thing, and how its statement ends.
const KINDS: &[(&str, &str, &str)] = &[
    ("FUNCTION gristmill.", "function", "\n$$;\n"),
    ("VIEW gristmill.", "view", ";\n"),
    ("TRIGGER ", "trigger", ";\n"),
    ("CONSTRAINT TRIGGER ", "trigger", ";\n"),
];

static ALL: LazyLock<Vec<Definition>> =
    LazyLock::new(|| FILES.iter().flat_map(|text| parse(text)).collect());

static FINGERPRINT: LazyLock<String> = LazyLock::new(|| {
    let each = all().iter().map(|one| format!("{} {} {}\n", one.kind, one.name, one.checksum));
    checksum(&each.collect::<String>())
});

/// One thing that stands in the schema, and the statement that makes it.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) kind: &'static str,
    pub(crate) name: &'static str,
    statement: &'static str,
    pub(crate) checksum: String,
}

impl Definition {
    /// The statement that makes it, or makes it anew in its place.
    pub(crate) fn replacing(&self, schema: &str) -> String {
        let text = match self.kind {
            "trigger" => self.statement.to_owned(),
            _ => self.statement.replacen("CREATE ", "CREATE OR REPLACE ", 1),
        };
        in_schema(&text, schema)
    }

    /// A function's body, as the server keeps it.
    pub(crate) fn body(&self, schema: &str) -> Option<String> {
        let (_, body) = self.statement.split_once(" AS $$").or_else(|| {
            // The options of some stand on lines of their own.
            self.statement.split_once("\nAS $$")
        })?;
        Some(in_schema(body.strip_suffix("$$;\n")?, schema))
    }

    /// Whether it was made by another text, or is missing.
    pub(crate) fn is_to_make(&self, standing: &Standing) -> bool {
        let made = standing.get(&(self.kind.to_owned(), self.name.to_owned()));
        made.is_none_or(|(by, body)| *by != self.checksum || body.is_none())
    }
}

/// What was made by whoever migrated last, by kind and name: a checksum of the
/// statement, and the body that stands now, if anything does.
pub(crate) type Standing = HashMap<(String, String), (String, Option<String>)>;

/// Reads it.
pub(crate) fn standing(rows: &[Row]) -> Result<Standing> {
    let read = |row| {
        Ok((
            (column(row, at!(DefinitionList.kind))?, column(row, at!(DefinitionList.name))?),
            (column(row, at!(DefinitionList.checksum))?, column(row, at!(DefinitionList.body))?),
        ))
    };
    rows.iter().map(read).collect()
}

/// All of them, in the order in which they can be made.
pub(crate) fn all() -> &'static [Definition] {
    &ALL
}

/// The texts with their comments, for a person to read.
pub(crate) fn texts() -> impl Iterator<Item = &'static str> {
    FILES.iter().copied()
}

/// Tells this program's set of them from any other.
pub(crate) fn fingerprint() -> &'static str {
    &FINGERPRINT
}

/// The version of this program. Of two programs on one store the newer one's
/// functions stand: the older one would take back what the newer one needs. Of two
/// builds of one version, whose texts differ while it is written, those of who opened
/// last.
pub(crate) fn program() -> Vec<i32> {
    let parts = env!("CARGO_PKG_VERSION").split(['.', '-', '+']);
    parts.take(3).map_while(|part| part.parse().ok()).collect()
}

/// The statements of one file. Comments are for readers: changing one makes
/// nothing anew.
fn parse(file: &'static str) -> Vec<Definition> {
    let mut found = Vec::new();
    let mut rest = file;
    loop {
        let made = rest.strip_prefix("CREATE ");
        let known = KINDS.iter().find_map(|(opening, kind, end)| {
            Some((made?.strip_prefix(opening)?.split(['(', ' ']).next()?, kind, end))
        });
        if let Some((name, kind, end)) = known
            && let Some(length) = rest.find(end).map(|at| at + end.len())
            && let (Some(statement), Some(after)) = (rest.get(..length), rest.get(length..))
        {
            let checksum = checksum(statement);
            found.push(Definition { kind, name, statement, checksum });
            rest = after;
        } else if let Some((_, after)) = rest.split_once('\n') {
            rest = after;
        } else {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_statement_is_read() {
        let begun = |text: &str| text.lines().filter(|line| line.starts_with("CREATE ")).count();
        for file in FILES {
            let read = parse(file);
            assert_eq!(read.len(), begun(file), "{}", file.lines().next().unwrap());
            // Between them stand comments and nothing else.
            let rest = read.iter().fold((*file).to_owned(), |rest, one| {
                assert_eq!(begun(one.statement), 1, "{}", one.name);
                rest.replacen(one.statement, "", 1)
            });
            let code = rest.lines().find(|line| !line.is_empty() && !line.starts_with("--"));
            assert_eq!(code, None);
        }
        for one in all() {
            let has_body = one.body("gristmill").is_some_and(|body| body.contains("\n"));
            assert_eq!(has_body, one.kind == "function", "{}", one.name);
        }
    }

    #[test]
    fn no_name_has_two_functions() {
        let names: BTreeSet<_> = all().iter().map(|one| (one.kind, one.name)).collect();
        assert_eq!(names.len(), all().len());
        assert_eq!(program().len(), 3);
    }
}

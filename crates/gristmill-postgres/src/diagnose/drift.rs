//! The schema as it is beside the schema as the steps make it.

use gristmill_core::Diagnosis;

/// One thing that stands in a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) kind: String,
    pub(super) name: String,
    /// The statement, or the words, that make it.
    pub(super) definition: String,
    /// An index that was not built to its end is not.
    pub(super) valid: bool,
}

/// What is missing or not as it should be. What somebody added is theirs.
pub(super) fn compare(schema: &str, wanted: &[Object], standing: &[Object]) -> Vec<Diagnosis> {
    wanted
        .iter()
        .filter_map(|wanted| {
            let same = |object: &&Object| object.kind == wanted.kind && object.name == wanted.name;
            one(schema, wanted, standing.iter().find(same))
        })
        .collect()
}

fn one(schema: &str, wanted: &Object, standing: Option<&Object>) -> Option<Diagnosis> {
    let Object { kind, name, definition, .. } = wanted;
    let is_index = kind == "index";
    match standing {
        None if is_index => Some(Diagnosis::grave(
            "missing_index",
            format!("index {name} is missing: claims and puts become slower with every task"),
            format!("make it again: {}", concurrently(definition)),
        )),
        None => Some(Diagnosis::grave(
            "schema_drift",
            format!("{kind} {name} is missing from schema {schema}"),
            remedy("removed", kind),
        )),
        Some(object) if is_index && !object.valid => Some(Diagnosis::grave(
            "missing_index",
            format!("index {name} was not built to its end, so nothing uses it"),
            format!("build it again: REINDEX INDEX CONCURRENTLY {schema}.{name}"),
        )),
        Some(object) if object.definition == *definition => None,
        Some(object) if kind == "storage" => Some(Diagnosis::note(
            "storage_settings",
            format!(
                "the storage settings of table {name} are ({}) and were ({definition})",
                object.definition
            ),
            "dead rows may be removed too late: set them back unless this was meant",
        )),
        Some(_) => Some(Diagnosis::grave(
            "schema_drift",
            format!("{kind} {name} of schema {schema} is not the one this program made"),
            remedy("changed", kind),
        )),
    }
}

/// What is no table can be made again at any time.
fn remedy(how: &str, kind: &str) -> String {
    if matches!(kind, "function" | "view") || (kind, how) == ("trigger", "removed") {
        return format!("somebody {how} it; 'gristmill migrate' makes it again");
    }
    format!("somebody {how} it; 'gristmill migrate --print' shows how it should be")
}

/// The statement that makes an index without stopping anybody.
fn concurrently(definition: &str) -> String {
    definition.replacen(" INDEX ", " INDEX CONCURRENTLY ", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, name: &str, definition: &str) -> Object {
        let (kind, name) = (kind.to_owned(), name.to_owned());
        Object { kind, name, definition: definition.to_owned(), valid: true }
    }

    #[test]
    fn a_missing_index_comes_with_its_statement() {
        let wanted = [object("index", "task_pick", "CREATE UNIQUE INDEX task_pick ON g.task (id)")];
        let found = compare("g", &wanted, &[]);
        assert_eq!((found.len(), found[0].code), (1, "missing_index"));
        let made = "make it again: CREATE UNIQUE INDEX CONCURRENTLY task_pick ON g.task (id)";
        assert_eq!(found[0].remedy, made);
        let mut half = wanted.clone();
        half[0].valid = false;
        assert!(compare("g", &wanted, &half)[0].remedy.contains("REINDEX"));
    }

    #[test]
    fn what_differs_is_drift_and_what_was_added_is_not() {
        let wanted = [object("function", "claim()", "a"), object("storage", "task", "x=1")];
        let mut standing = wanted.to_vec();
        standing.push(object("index", "theirs", "z"));
        assert!(compare("g", &wanted, &standing).is_empty());
        standing[0].definition = "b".to_owned();
        standing[1].definition = "x=2".to_owned();
        let found: Vec<_> =
            compare("g", &wanted, &standing).iter().map(|d| (d.code, d.grave)).collect();
        assert_eq!(found, [("schema_drift", true), ("storage_settings", false)]);
    }
}

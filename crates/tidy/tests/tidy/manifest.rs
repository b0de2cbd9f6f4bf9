//! A reader for the few things the checkers ask of a `Cargo.toml`.
//!
//! It reads line by line: sections, keys, and which crates a section names.
//! That covers the way manifests are written here without a TOML parser.

use crate::repo::File;

/// A `key = value` line and the section it stands in.
pub(crate) struct Entry<'a> {
    pub(crate) section: String,
    pub(crate) key: &'a str,
    pub(crate) value: &'a str,
    pub(crate) line: usize,
}

/// A crate that a manifest names.
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// Whether only tests, examples and benches see it.
    pub(crate) dev: bool,
}

pub(crate) fn entries(file: &File) -> Vec<Entry<'_>> {
    let mut section = String::new();
    let mut found = Vec::new();
    for (line, text) in file.lines() {
        let text = text.trim();
        if text.starts_with('#') {
            continue;
        }
        if let Some(name) = text.strip_prefix('[') {
            section = name.trim_start_matches('[').trim_end_matches(']').to_owned();
            // A section is an entry too: `[dependencies.NAME]` may be empty.
            found.push(Entry { section: section.clone(), key: "", value: "", line });
        } else if let Some((key, value)) = text.split_once('=') {
            found.push(Entry {
                section: section.clone(),
                key: key.trim(),
                value: value.trim(),
                line,
            });
        }
    }
    found
}

/// Every crate named in any dependency section: plain, build, dev, by target,
/// and in the `[dependencies.NAME]` form.
pub(crate) fn dependencies(file: &File) -> Vec<Dependency> {
    entries(file).iter().filter_map(dependency).collect()
}

fn dependency(entry: &Entry<'_>) -> Option<Dependency> {
    let section = entry.section.as_str();
    let dev = section.contains("dev-dependencies");
    let (_, after) = section.rsplit_once("dependencies")?;
    let named_by_section = after.strip_prefix('.');
    let name = match (named_by_section, entry.key) {
        (Some(name), "") => name,
        (Some(_), "package") => entry.value,
        (None, key) if !key.is_empty() => {
            package(entry.value).unwrap_or_else(|| key.split('.').next().unwrap_or(key))
        }
        _ => return None,
    };
    Some(Dependency { name: name.trim_matches('"').to_owned(), line: entry.line, dev })
}

/// The real name behind `alias = { package = "name" }`.
fn package(value: &str) -> Option<&str> {
    let (_, after) = value.split_once("package")?;
    after.trim_start().strip_prefix('=')?.split('"').nth(1)
}

/// The value of a key in a section, with its quotes removed.
pub(crate) fn value<'a>(file: &'a File, section: &str, key: &str) -> Option<&'a str> {
    entries(file)
        .into_iter()
        .find(|entry| entry.section == section && entry.key == key)
        .map(|entry| entry.value.trim_matches('"'))
}

#[test]
fn every_form_of_a_dependency_is_read() {
    let file = File {
        path: "Cargo.toml".to_owned(),
        text: "[package]\nname = \"x\"\n\
               [dependencies]\na.workspace = true\nb = \"1\"\nc = { package = \"real-c\", version = \"1\" }\n# d = \"1\"\n\
               [dependencies.e]\nversion = \"1\"\n\
               [target.'cfg(unix)'.dependencies]\nf = \"1\"\n\
               [build-dependencies]\ng = \"1\"\n\
               [dev-dependencies]\nh = \"1\"\n"
            .to_owned(),
    };
    let found: Vec<(String, usize, bool)> =
        dependencies(&file).into_iter().map(|found| (found.name, found.line, found.dev)).collect();
    let wanted = [
        ("a", 4, false),
        ("b", 5, false),
        ("real-c", 6, false),
        ("e", 8, false),
        ("f", 11, false),
        ("g", 13, false),
        ("h", 15, true),
    ];
    assert_eq!(found, wanted.map(|(name, line, dev)| (name.to_owned(), line, dev)));
    assert_eq!(value(&file, "package", "name"), Some("x"));
}

//! Which crate may use which: dependency direction, database drivers, wire
//! formats, and what every manifest must say.

use crate::manifest::{self, Dependency};
use crate::repo::{File, Finding, Repo, expect};

/// Each crate and the crates of this repository it may depend on. Tests may use
/// more (`[dev-dependencies]`), and only tests may use `gristmill-conformance`
/// and `gristmill-pgserver`.
const EDGES: &[(&str, &[&str])] = &[
    ("gristmill-core", &[]),
    ("gristmill-text", &["gristmill-core"]),
    ("gristmill-files", &["gristmill-core", "gristmill-text"]),
    ("gristmill-sqlite", &["gristmill-core", "gristmill-text"]),
    ("gristmill-postgres", &["gristmill-core", "gristmill-text"]),
    ("gristmill-remote", &["gristmill-core", "gristmill-text"]),
    // Its program opens any store; its library, which the stores' tests use, does not.
    (
        "gristmill-conformance",
        &["gristmill-core", "gristmill-text", "gristmill", "gristmill-pgserver"],
    ),
    ("gristmill-pgserver", &[]),
    ("gristmill-contract", &["gristmill-core"]),
    (
        "gristmill",
        &[
            "gristmill-core",
            "gristmill-text",
            "gristmill-contract",
            "gristmill-files",
            "gristmill-sqlite",
            "gristmill-postgres",
            "gristmill-remote",
        ],
    ),
    (
        "gristmill-server",
        &["gristmill", "gristmill-contract", "gristmill-remote", "gristmill-text"],
    ),
    ("gristmill-cli", &["gristmill", "gristmill-contract", "gristmill-server"]),
    ("gristmill-tidy", &[]),
];

/// The crates that speak to a database.
pub(crate) const SQL_STORES: &[&str] = &["gristmill-sqlite", "gristmill-postgres"];

const DRIVERS: &[&str] = &[
    "rusqlite",
    "libsqlite3-sys",
    "tokio-postgres",
    "postgres",
    "deadpool-postgres",
    "sqlx",
    "sqlx-core",
    "sqlx-postgres",
];

const WIRE_FORMATS: &[&str] = &["serde", "serde_json", "rmp-serde"];

/// The manifests under `crates/` with the name each gives its package.
fn packages(repo: &Repo) -> impl Iterator<Item = (&File, &str)> {
    repo.files
        .iter()
        .filter(|file| {
            file.crate_dir().is_some_and(|dir| file.path == format!("crates/{dir}/Cargo.toml"))
        })
        .map(|file| (file, manifest::value(file, "package", "name").unwrap_or("")))
}

/// What the crate itself is built from, without what only its tests use.
fn shipped(file: &File) -> impl Iterator<Item = Dependency> {
    manifest::dependencies(file).into_iter().filter(|dependency| !dependency.dev)
}

fn is_ours(name: &str) -> bool {
    name == "gristmill" || name.starts_with("gristmill-")
}

pub(crate) fn edges(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, name) in packages(repo) {
        let Some((_, allowed)) = EDGES.iter().find(|(from, _)| *from == name) else {
            findings.push(Finding::new(
                &file.path,
                1,
                format!("`{name}` has no row in the table of dependencies"),
                "add one to EDGES in crates/tidy/tests/tidy/crates.rs",
            ));
            continue;
        };
        for dependency in shipped(file).filter(|dependency| is_ours(&dependency.name)) {
            if !allowed.contains(&dependency.name.as_str()) {
                findings.push(Finding::new(
                    &file.path,
                    dependency.line,
                    format!("`{name}` must not depend on `{}`", dependency.name),
                    "move the code to the crate that may, or the line to [dev-dependencies] if only tests need it",
                ));
            }
        }
    }
    findings
}

pub(crate) fn drivers(repo: &Repo) -> Vec<Finding> {
    let outside = packages(repo).filter(|(_, name)| !SQL_STORES.contains(name));
    outside
        .flat_map(|(file, name)| {
            named(file, DRIVERS, move |driver| {
                format!("`{name}` depends on the database driver `{driver}`")
            })
        })
        .map(|(path, line, wrong)| {
            Finding::new(&path, line, wrong, "only SQL stores may; ask the Store trait instead")
        })
        .collect()
}

pub(crate) fn wire_formats(repo: &Repo) -> Vec<Finding> {
    let core = packages(repo).filter(|(_, name)| *name == "gristmill-core");
    core.flat_map(|(file, _)| {
        named(file, WIRE_FORMATS, |format| format!("the core depends on `{format}`"))
    })
    .map(|(path, line, wrong)| {
        Finding::new(
            &path,
            line,
            wrong,
            "write a small mirror struct in the crate that sends or stores the value",
        )
    })
    .collect()
}

/// Where a manifest names one of the listed crates, and what to say of it.
fn named(file: &File, list: &[&str], say: impl Fn(&str) -> String) -> Vec<(String, usize, String)> {
    shipped(file)
        .filter(|dependency| list.contains(&dependency.name.as_str()))
        .map(|dependency| (file.path.clone(), dependency.line, say(&dependency.name)))
        .collect()
}

pub(crate) fn manifests(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, _) in packages(repo) {
        if manifest::value(file, "lints", "workspace") != Some("true") {
            let remedy = "add a [lints] section with workspace = true";
            findings.push(Finding::new(&file.path, 1, "the shared lints are not in force", remedy));
        }
        if manifest::value(file, "package", "description").is_none_or(str::is_empty) {
            let remedy = "say in one line what the crate is for";
            findings.push(Finding::new(&file.path, 1, "the crate has no description", remedy));
        }
    }
    findings
}

#[cfg(test)]
fn sample(name: &str, rest: &str) -> Repo {
    let text = format!("[package]\nname = \"{name}\"\n{rest}");
    Repo::sample(&[("crates/x/Cargo.toml", text.as_str())])
}

#[test]
fn a_dependency_against_the_direction_is_caught() {
    let wrong =
        "[dependencies]\ngristmill-core.workspace = true\ngristmill-sqlite.workspace = true\n";
    expect(&edges(&sample("gristmill", wrong)), &[]);
    expect(
        &edges(&sample("gristmill-sqlite", wrong)),
        &[("crates/x/Cargo.toml:5", "must not depend on")],
    );
    expect(
        &edges(&sample("gristmill-core", wrong)).split_off(1),
        &[("crates/x/Cargo.toml:5", "gristmill-sqlite")],
    );
}

#[test]
fn only_tests_may_use_the_conformance_suite() {
    let shipped = "[dependencies]\ngristmill-conformance.workspace = true\n";
    let dev = "[dev-dependencies]\ngristmill-conformance.workspace = true\n";
    expect(
        &edges(&sample("gristmill-sqlite", shipped)),
        &[("crates/x/Cargo.toml:4", "gristmill-conformance")],
    );
    expect(&edges(&sample("gristmill-sqlite", dev)), &[]);
}

#[test]
fn a_crate_without_a_row_is_caught() {
    expect(&edges(&sample("gristmill-new", "")), &[("crates/x/Cargo.toml:1", "no row")]);
}

#[test]
fn a_driver_outside_the_stores_is_caught() {
    let driver = "[dependencies]\nrusqlite.workspace = true\n";
    expect(&drivers(&sample("gristmill", driver)), &[("crates/x/Cargo.toml:4", "rusqlite")]);
    expect(&drivers(&sample("gristmill-sqlite", driver)), &[]);
}

#[test]
fn a_wire_format_in_the_core_is_caught() {
    let serde = "[dependencies]\nserde = { workspace = true }\n";
    expect(&wire_formats(&sample("gristmill-core", serde)), &[("crates/x/Cargo.toml:4", "serde")]);
    expect(&wire_formats(&sample("gristmill", serde)), &[]);
}

#[test]
fn a_bare_manifest_is_caught() {
    let wanted = [("crates/x/Cargo.toml:1", "lints"), ("crates/x/Cargo.toml:1", "description")];
    expect(&manifests(&sample("gristmill", "")), &wanted);
    let full = "description = \"what it is\"\n[lints]\nworkspace = true\n";
    expect(&manifests(&sample("gristmill", full)), &[]);
}

//! The checks on the repository, one test each, over the files as they stand.
//!
//! Every checker is a function from a [`Repo`] (paths and texts in memory) to
//! findings. So each module can also try its checkers on small made-up
//! repositories: a checker that never fires would be worth nothing.

mod crates;
mod docs;
mod lexer;
mod licences;
mod manifest;
mod orphans;
mod packaging;
mod port;
mod repo;
mod security;
mod seeds;
mod sleeps;
mod sql;
mod text;
mod walks;

use repo::{Finding, Repo};
use std::io;
use std::path::Path;

/// Runs one checker over the real repository and shows all it found at once.
fn hold(check: fn(&Repo) -> Vec<Finding>) -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let findings = check(&Repo::read(&root)?);
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
    Ok(())
}

#[test]
fn dependencies_point_one_way() -> io::Result<()> {
    hold(crates::edges)
}

#[test]
fn database_drivers_stay_in_stores() -> io::Result<()> {
    hold(crates::drivers)
}

#[test]
fn core_knows_no_wire_format() -> io::Result<()> {
    hold(crates::wire_formats)
}

#[test]
fn manifests_share_lints_and_say_what_the_crate_is() -> io::Result<()> {
    hold(crates::manifests)
}

#[test]
fn sql_stands_in_sql_files_of_stores() -> io::Result<()> {
    hold(sql::statements)
}

#[test]
fn the_unit_that_is_packaged_is_the_one_that_is_shown() -> io::Result<()> {
    hold(packaging::unit)
}

#[test]
fn every_rust_file_is_compiled() -> io::Result<()> {
    hold(orphans::modules)
}

#[test]
fn every_sql_file_is_included() -> io::Result<()> {
    hold(orphans::sql_files)
}

#[test]
fn every_named_statement_is_used() -> io::Result<()> {
    hold(orphans::sql_statements)
}

#[test]
fn every_rust_file_says_what_it_is_for() -> io::Result<()> {
    hold(text::opening_docs)
}

#[test]
fn nothing_unfinished_and_no_local_paths() -> io::Result<()> {
    hold(text::forbidden)
}

#[test]
fn files_stay_short() -> io::Result<()> {
    hold(text::lengths)
}

#[test]
fn the_port_stays_small() -> io::Result<()> {
    hold(port::verbs)
}

#[test]
fn tests_sleep_only_where_they_must() -> io::Result<()> {
    hold(sleeps::listed)
}

#[test]
fn every_doc_is_linked() -> io::Result<()> {
    hold(docs::links)
}

#[test]
fn every_program_in_a_page_is_compiled() -> io::Result<()> {
    hold(docs::programs)
}

#[test]
fn every_guarantee_is_shown_by_a_behaviour() -> io::Result<()> {
    hold(docs::guarantees)
}

#[test]
fn the_five_systems_are_accounted_for() -> io::Result<()> {
    hold(seeds::rows)
}

#[test]
fn every_risk_is_shown_to_be_guarded_against() -> io::Result<()> {
    hold(security::rows)
}

#[test]
fn every_walk_goes_through_files_that_exist() -> io::Result<()> {
    hold(walks::files)
}

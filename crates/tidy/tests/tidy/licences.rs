//! The licences of all that is in the shipped program, in one file that goes with it.
//!
//! Which crates those are, cargo says; the texts are those that the crates carry. The
//! file is made anew with `./test --keep-licences`.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "tests assert")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const FILE: &str = "THIRD-PARTY-LICENSES.txt";
/// What is shipped, and for which machine.
const PROGRAM: &str = "gristmill-cli";
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Set to write the file instead of comparing it.
const KEEP: &str = "GRISTMILL_KEEP_LICENCES";

const OPENING: &str = "\
Licences of others' work in the program `gristmill`

Each crate below is compiled into it, under the licence named behind it. Where a crate
offers several, it is used under the MIT licence if that is one of them. The texts follow,
as the crates carry them. SQLite, which libsqlite3-sys brings along, is in the public
domain.

Made by `./test --keep-licences`; a test compares it with what is built.
";

/// A crate of somebody else in the program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Crate {
    name: String,
    version: String,
    licence: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What cargo says, or nothing where it cannot be asked.
fn cargo(words: &[&str]) -> Option<String> {
    let output =
        Command::new(env!("CARGO")).args(words).current_dir(root()).output().expect("cargo runs");
    if !output.status.success() {
        eprintln!("NOT RUN: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(String::from_utf8(output.stdout).expect("cargo speaks UTF-8"))
}

/// Everything of others that is in the program, by name.
fn shipped() -> Option<Vec<Crate>> {
    let said = cargo(&[
        "tree",
        "--offline",
        "--locked",
        "-p",
        PROGRAM,
        "-e",
        "normal",
        "--target",
        TARGET,
        "--prefix",
        "none",
        "--format",
        "{p}|{l}",
    ])?;
    let mut crates: Vec<Crate> = said.lines().filter_map(read_line).collect();
    crates.sort();
    crates.dedup();
    Some(crates)
}

/// `serde v1.0.0|MIT OR Apache-2.0`; our own crates have a path behind the version.
fn read_line(line: &str) -> Option<Crate> {
    let (package, licence) = line.split_once('|')?;
    let mut words = package.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    if words.any(|word| word.starts_with('(') && word.contains('/')) {
        return None;
    }
    let licence = licence.trim_end_matches(" (*)");
    Some(Crate { name: name.into(), version: version.into(), licence: licence.into() })
}

/// Where each crate's files are.
fn places() -> Option<BTreeMap<(String, String), PathBuf>> {
    let said = cargo(&["metadata", "--offline", "--locked", "--format-version", "1"])?;
    let said: Value = serde_json::from_str(&said).expect("cargo writes JSON");
    let packages = said["packages"].as_array().expect("packages");
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let place = |package: &Value| {
        let manifest = PathBuf::from(text(package, "manifest_path"));
        let folder = manifest.parent().expect("a folder").to_owned();
        ((text(package, "name"), text(package, "version")), folder)
    };
    Some(packages.iter().map(place).collect())
}

/// The texts that go with a crate: the MIT licence alone where it may be chosen, else all
/// of them; and what else it wants told.
fn texts(of: &Crate, folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("the crate's folder")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            let name = name.to_ascii_uppercase();
            ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT"]
                .iter()
                .any(|begins| name.starts_with(begins))
        })
        .collect();
    names.sort();
    let mit = |name: &String| name.to_ascii_uppercase().contains("MIT");
    if of.licence.contains("MIT") && names.iter().any(mit) {
        names.retain(|name| mit(name) || name.to_ascii_uppercase().starts_with("NOTICE"));
    }
    let read = |name: String| fs::read(folder.join(name)).ok();
    let texts = names.into_iter().filter_map(read);
    texts.map(|bytes| tidied(&String::from_utf8_lossy(&bytes))).collect()
}

/// Without what differs and says nothing: line ends and blank edges.
fn tidied(text: &str) -> String {
    let lines: Vec<&str> = text.trim_matches(['\u{feff}', '\n', '\r']).lines().collect();
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

/// The file as it should be.
fn whole(crates: &[Crate], places: &BTreeMap<(String, String), PathBuf>) -> String {
    let mut file = format!("{OPENING}\n");
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in crates {
        let named = format!("{} {}", one.name, one.version);
        let _ = writeln!(file, "{named:<40} {}", one.licence);
        let folder = places.get(&(one.name.clone(), one.version.clone())).expect("its place");
        for text in texts(one, folder) {
            by_text.entry(text).or_default().push(named.clone());
        }
    }
    let mut found: Vec<(Vec<String>, String)> =
        by_text.into_iter().map(|(text, names)| (names, text)).collect();
    found.sort();
    for (names, text) in found {
        let _ = write!(file, "\n{}\n{}\n\n{text}\n", "-".repeat(80), names.join(", "));
    }
    file
}

/// The lines of the list, of a file like it.
fn listed(file: &str) -> Vec<&str> {
    let list = file.strip_prefix(OPENING).unwrap_or(file);
    list.lines()
        .take_while(|line| !line.starts_with("--"))
        .filter(|line| !line.is_empty())
        .collect()
}

#[test]
fn the_licences_of_all_that_is_shipped_are_kept() {
    let (Some(crates), Some(places)) = (shipped(), places()) else { return };
    assert!(crates.iter().any(|one| one.name == "rusqlite"), "{crates:?}");
    assert!(!crates.iter().any(|one| one.name == "proptest"), "only for tests: {crates:?}");
    let now = whole(&crates, &places);
    let path = root().join(FILE);
    if std::env::var_os(KEEP).is_some() {
        fs::write(path, now).expect("written");
        return;
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    let (kept_list, now_list) = (listed(&kept), listed(&now));
    let gone: Vec<_> = kept_list.iter().filter(|line| !now_list.contains(line)).collect();
    let new: Vec<_> = now_list.iter().filter(|line| !kept_list.contains(line)).collect();
    assert!(
        kept == now,
        "{FILE} is out of date: run ./test --keep-licences\nshipped and not in it: \
         {new:#?}\nin it and not shipped: {gone:#?}"
    );
}

/// Whose licence says nothing may not be shipped.
#[test]
fn every_licence_is_named() {
    let Some(crates) = shipped() else { return };
    let nameless: Vec<_> = crates.iter().filter(|one| one.licence.trim().is_empty()).collect();
    assert!(nameless.is_empty(), "without a licence: {nameless:?}");
}

#[test]
fn a_line_of_cargos_is_read() {
    let read = read_line("serde v1.0.229|MIT OR Apache-2.0 (*)").expect("a crate");
    assert_eq!((read.name.as_str(), read.version.as_str()), ("serde", "1.0.229"));
    assert_eq!(read.licence, "MIT OR Apache-2.0");
    assert!(read_line("gristmill v0.1.0 (crates/gristmill)|MIT").is_none());
    assert!(read_line("serde_derive v1.0.0 (proc-macro)|MIT").is_some());
}

//! The Python client's own tests, against a service of this build.

use std::path::Path;
use std::process::Command;

use crate::http::started;
use crate::place::Place;

#[test]
fn the_python_client_passes_its_tests() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("NOT RUN: python3 is missing");
        return;
    }
    let place = Place::new();
    let (_serve, address) = started(&place, &["serve"]);
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python");
    let output = Command::new("python3")
        .args(["-m", "unittest", "discover", "tests"])
        .current_dir(client)
        .env("GRISTMILL_URL", format!("http://{address}"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("\nRan 13 tests"), "{said}");
}

/// Kills the service under clients, and compares what they were told with what ran.
fn kill_the_service(kills: &str) {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("NOT RUN: python3 is missing");
        return;
    }
    let place = Place::new();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("python3")
        .arg(here.join("tests/it/killed.py"))
        .args([env!("CARGO_BIN_EXE_gristmill"), kills])
        .arg(place.path(""))
        .arg(here.join("../../clients/python"))
        .env_remove("GRISTMILL_STORE")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    println!("{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn what_was_acknowledged_survives_a_killed_service() {
    kill_the_service("2");
}

#[test]
#[ignore = "long: twenty kills"]
fn what_was_acknowledged_survives_twenty_kills() {
    kill_the_service("20");
}

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

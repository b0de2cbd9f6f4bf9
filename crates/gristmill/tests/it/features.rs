//! What a program builds that wants one store.

use std::process::Command;

/// The crates of a build with these features of ours, as cargo resolves them here.
fn crates(features: &str) -> Option<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "-p", "gristmill", "-e", "normal,build"])
        .args(["--no-default-features", "--features", features, "--prefix", "none"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    if !output.status.success() {
        eprintln!("NOT RUN: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(String::from_utf8(output.stdout).unwrap())
}

fn has(crates: &str, name: &str) -> bool {
    crates.lines().any(|line| line.split(' ').next() == Some(name))
}

#[test]
fn who_wants_one_store_builds_no_other() {
    // What compiles C says so by `cc`.
    for (features, without) in [
        ("postgres", &["rusqlite", "libsqlite3-sys", "gristmill-files", "ring", "cc"][..]),
        ("postgres,tls", &["rusqlite", "libsqlite3-sys", "gristmill-contract"]),
        ("sqlite", &["tokio-postgres", "rustls", "ring", "gristmill-contract"]),
        ("files", &["tokio-postgres", "rusqlite", "cc"]),
        ("tls", &["tokio-postgres", "rusqlite", "rustls", "cc"]),
    ] {
        let Some(crates) = crates(features) else { return };
        for name in without {
            assert!(!has(&crates, name), "{name} with the features {features}:\n{crates}");
        }
    }
    let Some(sqlite) = crates("sqlite") else { return };
    assert!(has(&sqlite, "libsqlite3-sys"), "{sqlite}");
}

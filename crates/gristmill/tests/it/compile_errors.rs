//! What the compiler says to the likeliest mistakes: our words first, which say what to
//! do, and not which of twelve implementations do not fit.

use std::path::Path;
use std::process::Command;

/// A task and what every program here begins with.
const BEGINS: &str = "\
use gristmill::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Mail {
    to: String,
}

impl TaskType for Mail {
    const QUEUE: &'static str = \"mails\";
}

#[derive(Clone)]
struct App;

";

/// The mistake, and what is said to it.
const MISTAKES: [(&str, &str, &[&str]); 5] = [
    (
        "order",
        "async fn send(app: State<App>, mail: Mail) { drop((app, mail)) }
         fn main() { let _ = |mill: &Mill| Worker::new(mill).state(App).handle(send); }",
        &["does not handle tasks", "a handler is an async function of a task"],
    ),
    (
        "state",
        "async fn send(mail: Mail, app: State<App>) { drop((app, mail)) }
         fn main() { let _ = |mill: &Mill| Worker::new(mill).handle(send); }",
        &["`State<T>` needs `Worker::state` before it"],
    ),
    (
        "serialize",
        "struct Page { url: String }
         impl TaskType for Page { const QUEUE: &'static str = \"pages\"; }
         fn main() { drop(Page { url: String::new() }.url) }",
        &["`Page` cannot be a payload", "#[derive(serde::Serialize, serde::Deserialize)]"],
    ),
    (
        "no_task",
        "struct Page { url: String }
         fn main() { let _ = |mill: &Mill| mill.put(Page { url: String::new() }); }",
        &["`Page` is not a task", "implement `gristmill::TaskType` for it"],
    ),
    (
        "returns",
        "async fn send(mail: Mail) -> u32 { drop(mail); 7 }
         fn main() { let _ = |mill: &Mill| Worker::new(mill).handle(send); }",
        &["it returns `()`, `Result<(), E>`"],
    ),
];

#[test]
#[ignore = "compiles a project of its own"]
fn long_the_likeliest_mistakes_are_told_in_our_words() {
    let clone = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let library = clone.join("crates/gristmill");
    file(
        "Cargo.toml",
        &format!(
            "[package]\nname = \"mistakes\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
             gristmill = {{ path = {library:?} }}\nserde = {{ version = \"1\", features = \
             [\"derive\"] }}\n"
        ),
    );
    // What we were built from is on this machine already.
    std::fs::copy(clone.join("Cargo.lock"), place.path().join("Cargo.lock")).unwrap();
    for (name, text, _) in MISTAKES {
        file(&format!("src/bin/{name}.rs"), &format!("{BEGINS}{text}\n"));
    }
    for (name, _, wanted) in MISTAKES {
        let output = Command::new("cargo")
            .args(["check", "--offline", "--quiet", "--color", "never", "--bin", name])
            .current_dir(place.path())
            .env("CARGO_TARGET_DIR", clone.join("target/init"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{name} compiles");
        for words in wanted {
            // The compiler breaks long notes into lines.
            let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains(words), "{name}: {words:?} is not said:\n{said}");
        }
        println!("{name}\n{said}");
    }
}

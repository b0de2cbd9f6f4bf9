//! `init`: a small project that is ready to run.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::Session;
use crate::args::InitArgs;
use crate::failure::{Exit, Failure};
use crate::stubs::Stubs;

/// Where this program was built.
const BUILT_FROM: &str = env!("CARGO_MANIFEST_DIR");

const CONTRACT: &str = include_str!("../init/queues.yaml");

/// What is ours of a project in Rust.
const RUST: &[(&str, &str)] = &[
    ("queues.yaml", CONTRACT),
    ("gristmill.yaml", include_str!("../init/rust/gristmill.yaml")),
    ("Cargo.toml", include_str!("../init/rust/Cargo.toml.txt")),
    ("build.rs", include_str!("../init/rust/build.rs.txt")),
    ("src/main.rs", include_str!("../init/rust/main.rs.txt")),
    ("src/handlers.rs", include_str!("../init/rust/handlers.rs.txt")),
    ("README.md", include_str!("../init/rust/README.md")),
    (".gitignore", "/target\n/gristmill.db*\n"),
];

/// What is ours of a project whose handlers are programs.
const EXEC: &[(&str, &str)] = &[
    ("queues.yaml", CONTRACT),
    ("gristmill.yaml", include_str!("../init/exec/gristmill.yaml")),
    ("handlers/emails", include_str!("../init/exec/emails")),
    ("handlers/digests", include_str!("../init/exec/digests")),
    ("README.md", include_str!("../init/exec/README.md")),
    (".gitignore", "/gristmill.db*\n"),
];

/// Begin a project.
#[derive(Debug)]
pub(crate) struct Init {
    folder: PathBuf,
    exec: bool,
    contract: Option<PathBuf>,
    gristmill: Option<PathBuf>,
}

impl Init {
    pub(crate) fn meant(args: InitArgs) -> Self {
        let InitArgs { folder, exec, contract, gristmill } = args;
        Init { folder, exec, contract, gristmill }
    }

    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        // A contract that cannot be read makes no folder.
        let own = self.contract.as_deref().map(Stubs::read).transpose()?;
        let shown = self.folder.display().to_string();
        let wrong = |error: std::io::Error| Failure::io(&shown, &error);
        std::fs::create_dir_all(&self.folder).map_err(wrong)?;
        // Never over somebody's work.
        if std::fs::read_dir(&self.folder).map_err(wrong)?.next().is_some() {
            return Err(Failure::new(
                Exit::Refused,
                "not_empty",
                format!("{shown} is not empty: name a new folder"),
            ));
        }
        let folder = self.folder.canonicalize().map_err(wrong)?;
        let name = package_name(&folder);
        let ours = if self.exec { None } else { Some(self.ours()?) };
        let sample = if self.exec { EXEC } else { RUST };
        let files = match &own {
            Some(stubs) => stubs.files(sample, self.exec),
            None => {
                sample.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect()
            }
        };
        for (file, text) in &files {
            // The contract is its author's, whatever it says.
            let text = if file == "queues.yaml" {
                text.clone()
            } else {
                filled(text, &name, ours.as_deref())
            };
            write(&folder.join(file), &text).map_err(wrong)?;
        }
        let names: Vec<&str> = files.iter().map(|(file, _)| file.as_str()).collect();
        let next = match (self.exec, &own) {
            (true, _) => "gristmill up",
            (false, None) => "cargo run -- put && cargo run",
            (false, Some(_)) => "cargo run",
        };
        session.output.either(
            &json!({ "folder": shown, "files": names }),
            format_args!("{shown} is ready ({}); try:\n  cd {shown} && {next}", names.join(", ")),
        )
    }

    /// Our own crates: of the clone that is named, or of the one this program was
    /// built from. They are on no registry yet, so a version would not build.
    fn ours(&self) -> Result<PathBuf, Failure> {
        let crates = match &self.gristmill {
            Some(clone) => clone.join("crates"),
            None => PathBuf::from(BUILT_FROM).join(".."),
        };
        if !crates.join("gristmill/Cargo.toml").is_file() {
            let said = match &self.gristmill {
                Some(clone) => format!("{} is no clone of gristmill", clone.display()),
                None => "the clone that this program was built from is gone: name another with \
                         --gristmill DIR (or begin with --exec, which needs none)"
                    .to_owned(),
            };
            return Err(Failure::usage(said));
        }
        crates.canonicalize().map_err(|error| Failure::io("--gristmill", &error))
    }
}

/// The text with the project's own words in it.
fn filled(text: &str, name: &str, ours: Option<&Path>) -> String {
    text.replace("{name}", name)
        .replace("{gristmill}", &depends("gristmill", ours))
        .replace("{contract}", &depends("gristmill-contract", ours))
}

/// A line of the manifest; a project without Rust has none.
fn depends(package: &str, ours: Option<&Path>) -> String {
    ours.map_or_else(String::new, |crates| {
        let path = crates.join(package).display().to_string();
        format!("{package} = {{ path = {} }}", serde_json::Value::String(path))
    })
}

/// The folder's name as cargo takes it.
fn package_name(folder: &Path) -> String {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = gristmill_contract::naming::snake_case(name).replace('_', "-");
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name
    } else {
        format!("queues-{name}").trim_end_matches('-').to_owned()
    }
}

fn write(file: &Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(file, text)?;
    // What begins so is meant to be run.
    if text.starts_with("#!") {
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

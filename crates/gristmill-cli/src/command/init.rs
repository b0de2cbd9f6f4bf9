//! `init`: a small project that is ready to run.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::Session;
use crate::args::{InitArgs, Language};
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
    lang: Language,
    contract: Option<PathBuf>,
    gristmill: Option<PathBuf>,
}

impl Init {
    pub(crate) fn meant(args: InitArgs) -> Self {
        let InitArgs { folder, exec, lang, contract, gristmill } = args;
        Init { folder, exec, lang, contract, gristmill }
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
        let files = self.files(own.as_ref())?;
        for (file, text) in &files {
            // The contract and its code are its author's, whatever they say.
            let text = if file.rsplit('/').next().is_some_and(|file| file.starts_with("queues.")) {
                text.clone()
            } else {
                filled(text, &name, ours.as_deref())
            };
            write(&folder.join(file), &text).map_err(wrong)?;
        }
        let names: Vec<&str> = files.iter().map(|(file, _)| file.as_str()).collect();
        let next = match (self.exec, self.lang, &own) {
            (true, ..) => "gristmill up",
            (_, Language::Rust, None) => "cargo run -- put && cargo run",
            (_, Language::Rust, Some(_)) => "cargo run",
            (_, Language::Python | Language::Typescript, _) => {
                "gristmill up      (README.md says what runs the worker beside it)"
            }
        };
        session.output.either(
            &json!({ "folder": shown, "files": names }),
            format_args!("{shown} is ready ({}); try:\n  cd {shown} && {next}", names.join(", ")),
        )
    }

    fn files(&self, own: Option<&Stubs>) -> Result<Vec<(String, String)>, Failure> {
        let sample = if self.exec { EXEC } else { RUST };
        Ok(match (self.lang, own) {
            (Language::Rust, Some(stubs)) => stubs.files(sample, self.exec),
            (Language::Rust, None) => {
                sample.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect()
            }
            (language, Some(stubs)) => stubs.client(language),
            (language, None) => Stubs::of(CONTRACT)?.client(language),
        })
    }

    /// What is ours and the project stands on: of the clone that is named, or of the one this program was
    /// built from. It is on no registry yet, so a version would not do.
    fn ours(&self) -> Result<PathBuf, Failure> {
        let clone = match &self.gristmill {
            Some(clone) => clone.clone(),
            None => PathBuf::from(BUILT_FROM).join("../.."),
        };
        let (folder, known_by) = match self.lang {
            Language::Rust => ("crates", "gristmill/Cargo.toml"),
            Language::Python => ("clients/python", "pyproject.toml"),
            Language::Typescript => ("clients/typescript", "package.json"),
        };
        let ours = clone.join(folder);
        if !ours.join(known_by).is_file() {
            let said = match &self.gristmill {
                Some(clone) => format!("{} is no clone of gristmill", clone.display()),
                None => "the clone that this program was built from is gone: name another with \
                         --gristmill DIR (or begin with --exec, which needs none)"
                    .to_owned(),
            };
            return Err(Failure::usage(said));
        }
        ours.canonicalize().map_err(|error| Failure::io("--gristmill", &error))
    }
}

/// The text with the project's own words in it.
fn filled(text: &str, name: &str, ours: Option<&Path>) -> String {
    text.replace("{name}", name)
        .replace("{client}", &ours.map(|ours| ours.display().to_string()).unwrap_or_default())
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

//! The repository as the checkers see it: paths and texts, nothing else.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// Text files of these kinds are read; scripts without an ending are too.
pub(crate) const ENDINGS: &[&str] =
    &["rs", "md", "sql", "toml", "sh", "py", "json", "yaml", "yml", "service"];

/// One text file; the path is relative to the root and uses `/`.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// The crate's folder name, for a file under `crates/NAME/`.
    pub(crate) fn crate_dir(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Whether the file is source of a crate, not one of its tests or examples.
    pub(crate) fn in_src(&self) -> bool {
        let mut parts = self.path.split('/');
        parts.next() == Some("crates") && parts.nth(1) == Some("src")
    }

    pub(crate) fn is(&self, ending: &str) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, end)| end == ending)
    }

    pub(crate) fn dir(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(dir, _)| dir)
    }

    pub(crate) fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(self.path.as_str(), |(_, name)| name)
    }

    /// Lines with their numbers, counted from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// All text files, sorted by path.
pub(crate) struct Repo {
    pub(crate) files: Vec<File>,
}

impl Repo {
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        walk(root, "", &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// A made-up repository, to try the checkers on.
    pub(crate) fn sample(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        Self { files }
    }

    pub(crate) fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether there is such a file, or a folder of files when it ends in `/`.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.files
            .iter()
            .any(|file| file.path == path || path.ends_with('/') && file.path.starts_with(path))
    }

    pub(crate) fn with_ending(&self, ending: &str) -> impl Iterator<Item = &File> {
        self.files.iter().filter(move |file| file.is(ending))
    }

    /// Folder names under `crates/`.
    pub(crate) fn crate_dirs(&self) -> BTreeSet<&str> {
        self.files
            .iter()
            .filter(|file| file.name() == "Cargo.toml")
            .filter_map(File::crate_dir)
            .collect()
    }
}

/// Reads the folder and those below it. Build output marks itself with
/// CACHEDIR.TAG, wherever it was told to lie.
fn walk(root: &Path, dir: &str, files: &mut Vec<File>) -> io::Result<()> {
    let here = root.join(dir);
    if dir == "target" || here.join("CACHEDIR.TAG").exists() {
        return Ok(());
    }
    for entry in fs::read_dir(&here)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if dir.is_empty() { name.clone() } else { format!("{dir}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && name != ".git" {
            walk(root, &path, files)?;
        } else if kind.is_file() && is_text(&entry.path(), &name)? {
            let text = String::from_utf8_lossy(&fs::read(entry.path())?).into_owned();
            files.push(File { path, text });
        }
    }
    Ok(())
}

fn is_text(path: &Path, name: &str) -> io::Result<bool> {
    match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => Ok(ENDINGS.contains(&ending)),
        _ => Ok(fs::read(path)?.starts_with(b"#!")),
    }
}

/// Joins a relative path to a folder and resolves `.` and `..`.
pub(crate) fn join(dir: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = dir.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
}

/// Something that is not as it should be, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    wrong: String,
    remedy: String,
}

impl Finding {
    pub(crate) fn new(
        path: &str,
        line: usize,
        wrong: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { path: path.to_owned(), line, wrong: wrong.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path, self.line, self.wrong, self.remedy)
    }
}

/// What a made-up repository should give: `path:line` and a word of the message
/// for each finding, in order.
pub(crate) fn expect(findings: &[Finding], wanted: &[(&str, &str)]) {
    let shown: Vec<String> = findings.iter().map(ToString::to_string).collect();
    let fits = shown.len() == wanted.len()
        && shown.iter().zip(wanted).all(|(line, (place, word))| {
            line.starts_with(&format!("{place}: ")) && line.contains(word)
        });
    assert!(fits, "wanted {wanted:#?}\nfound {shown:#?}");
}

#[test]
fn joins_relative_paths() {
    assert_eq!(join("docs", "../README.md"), "README.md");
    assert_eq!(join("", "./docs/a.md"), "docs/a.md");
    assert_eq!(join("crates/a/src", "sql/put.sql"), "crates/a/src/sql/put.sql");
}

#[test]
fn a_finding_names_place_fault_and_remedy() {
    let finding = Finding::new("a.rs", 3, "wrong", "do this");
    assert_eq!(finding.to_string(), "a.rs:3: wrong; do this");
}

#[test]
fn the_real_repository_is_read() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let repo = Repo::read(&root)?;
    assert!(repo.get("Cargo.toml").is_some(), "the walk starts in the wrong place");
    assert!(repo.get("test").is_some(), "scripts without an ending are not read");
    assert!(repo.crate_dirs().contains("tidy"), "no crates were found");
    assert!(
        repo.files.iter().all(|file| !file.path.starts_with("target/")),
        "build output was read"
    );
    Ok(())
}

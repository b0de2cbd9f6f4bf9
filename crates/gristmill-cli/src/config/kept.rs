//! A value that may stand elsewhere than in the file, because it is a secret:
//! `store: {env: SHOP_STORE}` or `store: {file: /run/secrets/store}`.
//!
//! No text is searched for variables: what stands in the file is meant as it stands,
//! so a `$` in a password or a command is a `$`.

use std::path::{Path, PathBuf};

use gristmill_contract::yaml::{Fields, Mistakes, Node, Value};

/// Longest secret that is read from a file.
const BYTES_MAX: u64 = 64 << 10;

/// Where a value is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kept {
    /// In the file itself.
    Here,
    /// In a variable of the environment.
    Environment(String),
    /// In a file of its own.
    File(PathBuf),
}

/// A value, where it is kept, and the place that names it.
pub(super) struct Given<'a> {
    pub(super) text: String,
    pub(super) kept: Kept,
    pub(super) at: &'a Node,
}

/// Reads a field that may be kept elsewhere. What is wrong is told without the value.
pub(super) fn read<'a>(
    fields: &mut Fields<'a>,
    name: &'static str,
    folder: &Path,
    mistakes: &mut Mistakes,
) -> Option<Given<'a>> {
    let at = fields.node(name)?;
    if !matches!(at.value, Value::Map(_)) {
        let text = fields.text(name, mistakes)?;
        return Some(Given { text, kept: Kept::Here, at });
    }
    let mut parts = Fields::of(at, "a value that is kept elsewhere", mistakes)?;
    let (env, file) = (parts.text("env", mistakes), parts.text("file", mistakes));
    parts.done(&["env", "file"], mistakes);
    let found = match (env, file) {
        (Some(variable), None) => {
            from_environment(&variable).map(|text| (text, Kept::Environment(variable)))
        }
        (None, Some(file)) => {
            let file = folder.join(file);
            from_file(&file).map(|text| (text, Kept::File(file)))
        }
        // Told above, where one was not read.
        (None, None) if !mistakes.is_empty() => return None,
        _ => Err("name one place: {env: VARIABLE} or {file: PATH}".to_owned()),
    };
    match found {
        Ok((text, kept)) => Some(Given { text, kept, at }),
        Err(why) => {
            mistakes.add(at, format!("{name}: {why}"));
            None
        }
    }
}

fn from_environment(variable: &str) -> Result<String, String> {
    match std::env::var(variable) {
        Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Ok(_) => Err(format!("the variable {variable} is empty: set it")),
        Err(std::env::VarError::NotPresent) => {
            Err(format!("there is no variable {variable} in the environment: set it"))
        }
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(format!("the variable {variable} is not text in UTF-8"))
        }
    }
}

fn from_file(file: &Path) -> Result<String, String> {
    let shown = file.display();
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("there is no file {shown}: make it"),
        _ => format!("{shown} cannot be read: {error}"),
    };
    let about = std::fs::metadata(file).map_err(unreadable)?;
    if !about.is_file() {
        // A pipe would be waited for.
        return Err(format!("{shown} is no file"));
    }
    if about.len() > BYTES_MAX {
        return Err(format!("{shown} is larger than {BYTES_MAX} bytes"));
    }
    let bytes = std::fs::read(file).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{shown} is not text in UTF-8"))?;
    match text.trim() {
        "" => Err(format!("{shown} is empty")),
        text => Ok(text.to_owned()),
    }
}

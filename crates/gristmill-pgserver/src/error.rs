//! Why a server for tests could not be had: one sentence for the reader of a
//! failed test.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::{Command, Output};

/// One sentence, as the test's reader should see it.
#[derive(Clone)]
pub struct Error(String);

impl Error {
    /// An error that says this.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    pub(crate) fn at(path: &Path, error: &io::Error) -> Self {
        Self(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The same as `Display`: `expect` in a test prints this one.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Runs a command to its end; what it wrote to stderr becomes the error.
pub(crate) fn run(command: &mut Command) -> Result<Output, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| Error(format!("{name} cannot be run: {error}")))?;
    if output.status.success() {
        return Ok(output);
    }
    let mut said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if said.is_empty() {
        said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    }
    Err(Error(format!("{name} ended with {}: {said}", output.status)))
}

//! Generating from a build script, in one line:
//!
//! ```no_run
//! fn main() -> Result<(), gristmill_contract::BuildError> {
//!     gristmill_contract::build("queues.yaml")
//! }
//! ```
//!
//! and in the crate itself:
//!
//! ```ignore
//! gristmill::include_contract!(pub mod queues);
//! ```

use std::fmt;
use std::path::{Path, PathBuf};

use crate::read_files;

/// Why a build script could not generate. Cargo shows it as it is written.
pub struct BuildError(String);

// What `main` returns is shown by Debug, and excerpts want their lines.
impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n\n{}\n", self.0)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BuildError {}

/// Generates code for a contract, `queues.yaml`, into `queues.rs` of the build
/// script's output folder, and has cargo run the script again when it changes.
///
/// # Errors
/// All mistakes of the contract, or why the file cannot be written.
pub fn build(contract: impl AsRef<Path>) -> Result<(), BuildError> {
    build_all(&[contract])
}

/// As [`build`], for a contract in several files; the output has the first
/// one's name.
///
/// # Errors
/// As [`build`].
pub fn build_all(contracts: &[impl AsRef<Path>]) -> Result<(), BuildError> {
    for path in contracts {
        // How a build script speaks to cargo.
        println!("cargo::rerun-if-changed={}", path.as_ref().display());
    }
    let contract = read_files(contracts).map_err(|error| BuildError(error.to_string()))?;
    let folder = std::env::var_os("OUT_DIR").map(PathBuf::from).ok_or_else(|| {
        BuildError("OUT_DIR is not set: call this from a build script".to_owned())
    })?;
    let names: Vec<&str> = contracts.iter().map(|path| file_name(path.as_ref())).collect();
    let stem = contracts.first().and_then(|path| path.as_ref().file_stem()?.to_str());
    let file = folder.join(format!("{}.rs", stem.unwrap_or("queues")));
    std::fs::write(&file, super::rust(&contract, &names, super::Place::Included))
        .map_err(|error| BuildError(format!("{} cannot be written: {error}", file.display())))
}

/// A file's name without its folder, which is another on every machine.
fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or("queues.yaml")
}

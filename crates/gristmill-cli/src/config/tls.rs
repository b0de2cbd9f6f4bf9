//! Encryption in the configuration: `tls: {cert: PATH, key: PATH}`.

use std::path::{Path, PathBuf};

use gristmill_contract::yaml::{Fields, Mistakes, Node};

/// Where the certificate and its key are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsConfig {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

/// Reads it. Paths are relative to the file.
pub(super) fn read(node: &Node, folder: &Path, mistakes: &mut Mistakes) -> Option<TlsConfig> {
    let mut fields = Fields::of(node, "tls", mistakes)?;
    let cert = fields.required_text("cert", mistakes);
    let key = fields.required_text("key", mistakes);
    fields.done(&["cert", "key"], mistakes);
    let file = |named: Option<(String, &Node)>, mistakes: &mut Mistakes| {
        let (path, at) = named?;
        let path = folder.join(path);
        if !path.is_file() {
            mistakes.add(at, format!("tls: there is no file {}", path.display()));
            return None;
        }
        Some(path)
    };
    let (cert, key) = (file(cert, mistakes), file(key, mistakes));
    Some(TlsConfig { cert: cert?, key: key? })
}

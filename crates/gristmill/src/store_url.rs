//! The URL that names a store.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Which store is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// `memory:`, gone when the process ends.
    Memory,
    /// `sqlite://path`, one file. `sqlite://a.db` is relative,
    /// `sqlite:///a.db` absolute.
    Sqlite(PathBuf),
    /// `files://folder`, one file a task. `files://spool` is relative,
    /// `files:///spool` absolute.
    Files(PathBuf),
}

/// Why a URL names no store, and what would.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreUrlError(String);

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(url: &str) -> Result<Self, StoreUrlError> {
        let known = "use memory:, sqlite://PATH or files://FOLDER";
        if let Some(rest) = url.strip_prefix("memory:") {
            return if rest.is_empty() || rest == "//" {
                Ok(StoreUrl::Memory)
            } else {
                Err(StoreUrlError(format!("'{url}': memory: takes nothing behind it")))
            };
        }
        if let Some(path) = url.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err(StoreUrlError(format!(
                    "'{url}' names no file: write it like sqlite://gristmill.db"
                )));
            }
            if path.contains('?') {
                return Err(StoreUrlError(format!(
                    "'{url}': sqlite: takes a path and nothing else"
                )));
            }
            return Ok(StoreUrl::Sqlite(PathBuf::from(path)));
        }
        if let Some(path) = url.strip_prefix("files:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path.contains('?') {
                return Err(StoreUrlError(format!(
                    "'{url}' names no folder: write it like files://spool"
                )));
            }
            return Ok(StoreUrl::Files(PathBuf::from(path)));
        }
        match url.split_once(':') {
            Some((scheme, _)) => {
                Err(StoreUrlError(format!("there is no store '{scheme}:'; {known}")))
            }
            None => Err(StoreUrlError(format!("'{url}' is not a store's URL; {known}"))),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Memory => f.write_str("memory:"),
            StoreUrl::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
            StoreUrl::Files(path) => write!(f, "files://{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        for (url, expected) in [
            ("memory:", StoreUrl::Memory),
            ("sqlite://a.db", StoreUrl::Sqlite("a.db".into())),
            ("sqlite:a.db", StoreUrl::Sqlite("a.db".into())),
            ("sqlite:///tmp/a.db", StoreUrl::Sqlite("/tmp/a.db".into())),
            ("files://spool", StoreUrl::Files("spool".into())),
            ("files:///tmp/spool", StoreUrl::Files("/tmp/spool".into())),
        ] {
            assert_eq!(url.parse(), Ok(expected), "{url}");
        }
    }

    #[test]
    fn what_is_no_url_says_what_would_be() {
        for url in
            ["", "a.db", "mysql://x", "sqlite://", "files://", "memory:x", "sqlite://a.db?mode=ro"]
        {
            let error = url.parse::<StoreUrl>().expect_err(url).to_string();
            let named = ["memory:", "sqlite:", "files:"];
            assert!(named.iter().any(|scheme| error.contains(scheme)), "{error}");
        }
    }
}

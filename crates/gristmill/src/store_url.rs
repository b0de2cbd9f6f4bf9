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
    /// `postgres://user@host/database`, a schema of a database.
    Postgres(PostgresUrl),
}

/// A PostgreSQL URL. It may hold a password, which no log line shows.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

impl PostgresUrl {
    /// The whole URL, password and all.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is said behind `?` may hold a password too.
        let plain = self.0.split('?').next().unwrap_or_default();
        let (scheme, rest) = plain.split_once("://").unwrap_or(("postgres", plain));
        match rest.rsplit_once('@') {
            None => write!(f, "{scheme}://{rest}"),
            Some((who, place)) => {
                let user = who.split(':').next().unwrap_or_default();
                write!(f, "{scheme}://{user}@{place}")
            }
        }
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a URL names no store, and what would.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreUrlError(String);

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(url: &str) -> Result<Self, StoreUrlError> {
        let known = "use memory:, sqlite://PATH, files://FOLDER or postgres://HOST/DATABASE";
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
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(StoreUrl::Postgres(PostgresUrl(url.to_owned())));
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
            StoreUrl::Postgres(url) => fmt::Display::fmt(url, f),
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
    fn a_password_is_never_shown() {
        let url = "postgres://me:s3cret@host:5432/db?sslmode=disable&listen_url=x%3Apw";
        let read: StoreUrl = url.parse().expect("a URL");
        assert_eq!(read.to_string(), "postgres://me@host:5432/db");
        assert_eq!(format!("{read:?}"), "Postgres(postgres://me@host:5432/db)");
        let StoreUrl::Postgres(whole) = read else { panic!("PostgreSQL") };
        assert_eq!(whole.reveal(), url);
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

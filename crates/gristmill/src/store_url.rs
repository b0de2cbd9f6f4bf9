//! The URL that names a store: read once, where it comes in, and a value from
//! there on, so that nothing behind it can print a password.

use std::fmt;
#[cfg(any(feature = "sqlite", feature = "files"))]
use std::path::PathBuf;
use std::str::FromStr;

#[cfg(feature = "postgres")]
use gristmill_postgres::PostgresUrl;
#[cfg(feature = "remote")]
use gristmill_remote::Address;

/// Which store is meant. Neither its text nor its debug form shows a password.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreUrl {
    /// `memory:`, gone when the process ends.
    Memory,
    /// `sqlite://path`, one file. `sqlite://a.db` is relative,
    /// `sqlite:///a.db` absolute.
    #[cfg(feature = "sqlite")]
    Sqlite(PathBuf),
    /// `files://folder`, one file a task. `files://spool` is relative,
    /// `files:///spool` absolute.
    #[cfg(feature = "files")]
    Files(PathBuf),
    /// `postgres://user@host/database`, a schema of a database.
    #[cfg(feature = "postgres")]
    Postgres(PostgresUrl),
    /// `http://host` or `https://host`, the store of a service.
    #[cfg(feature = "remote")]
    Remote(Address),
}

impl StoreUrl {
    /// The whole URL, password and all: to open the store, and to hand on to
    /// whoever may open it.
    #[must_use]
    pub fn reveal(&self) -> String {
        match self {
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(url) => url.reveal().to_owned(),
            #[cfg(feature = "remote")]
            StoreUrl::Remote(address) => address.reveal(),
            #[allow(unreachable_patterns, reason = "it depends on the features")]
            other => other.to_string(),
        }
    }

    /// Whether what is shown is all there is: then it can be copied and used.
    #[must_use]
    pub fn is_shown_whole(&self) -> bool {
        match self {
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(url) => url.is_shown_whole(),
            #[cfg(feature = "remote")]
            StoreUrl::Remote(address) => address.is_shown_whole(),
            #[allow(unreachable_patterns, reason = "it depends on the features")]
            _ => true,
        }
    }
}

/// Why a URL names no store, and what would. It repeats nothing of the URL that
/// may be a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreUrlError(String);

const KNOWN: &str =
    "use memory:, sqlite://PATH, files://FOLDER, postgres://HOST/DATABASE or http://HOST:PORT";

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(url: &str) -> Result<Self, StoreUrlError> {
        if let Some(rest) = url.strip_prefix("memory:") {
            return if rest.is_empty() || rest == "//" {
                Ok(StoreUrl::Memory)
            } else {
                wrong("memory: takes nothing behind it")
            };
        }
        if let Some(path) = url.strip_prefix("sqlite:") {
            return sqlite(path.strip_prefix("//").unwrap_or(path));
        }
        if let Some(path) = url.strip_prefix("files:") {
            return files(path.strip_prefix("//").unwrap_or(path));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return postgres(url);
        }
        if url.starts_with("http://") || url.starts_with("https://") {
            return remote(url);
        }
        // Before '://' stands a word, elsewhere anything may stand before a ':'.
        let scheme = url.split_once("://").map(|(scheme, _)| scheme);
        let is_word =
            |word: &&str| word.len() <= 20 && word.bytes().all(|b| b.is_ascii_lowercase());
        Err(StoreUrlError(match scheme.filter(is_word) {
            Some(scheme) => format!("there is no store '{scheme}:'; {KNOWN}"),
            None => format!("this is not a store's URL; {KNOWN}"),
        }))
    }
}

#[cfg(feature = "sqlite")]
fn sqlite(path: &str) -> Result<StoreUrl, StoreUrlError> {
    if path.is_empty() {
        return wrong("sqlite: names no file: write it like sqlite://gristmill.db");
    }
    if path.contains('?') {
        return wrong("sqlite: takes a path and nothing else: leave out the '?'");
    }
    Ok(StoreUrl::Sqlite(PathBuf::from(path)))
}

#[cfg(feature = "files")]
fn files(path: &str) -> Result<StoreUrl, StoreUrlError> {
    if path.is_empty() || path.contains('?') {
        return wrong("files: names no folder: write it like files://spool");
    }
    Ok(StoreUrl::Files(PathBuf::from(path)))
}

#[cfg(feature = "postgres")]
fn postgres(url: &str) -> Result<StoreUrl, StoreUrlError> {
    let read = url.parse::<PostgresUrl>();
    read.map(StoreUrl::Postgres).map_err(|error| StoreUrlError(error.to_string()))
}

#[cfg(feature = "remote")]
fn remote(url: &str) -> Result<StoreUrl, StoreUrlError> {
    let read = url.parse::<Address>();
    read.map(StoreUrl::Remote).map_err(|error| StoreUrlError(error.to_string()))
}

#[cfg(not(feature = "remote"))]
fn remote(_: &str) -> Result<StoreUrl, StoreUrlError> {
    wrong("this program was built without services: build gristmill with the feature 'remote'")
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_: &str) -> Result<StoreUrl, StoreUrlError> {
    wrong("this program was built without SQLite: build gristmill with the feature 'sqlite'")
}

#[cfg(not(feature = "files"))]
fn files(_: &str) -> Result<StoreUrl, StoreUrlError> {
    wrong("this program was built without the file spool: build gristmill with the feature 'files'")
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &str) -> Result<StoreUrl, StoreUrlError> {
    wrong("this program was built without PostgreSQL: build gristmill with the feature 'postgres'")
}

fn wrong(why: &str) -> Result<StoreUrl, StoreUrlError> {
    Err(StoreUrlError(why.to_owned()))
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Memory => f.write_str("memory:"),
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(url) => fmt::Display::fmt(url, f),
            #[cfg(feature = "remote")]
            StoreUrl::Remote(address) => fmt::Display::fmt(address, f),
            #[cfg(feature = "sqlite")]
            StoreUrl::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
            #[cfg(feature = "files")]
            StoreUrl::Files(path) => write!(f, "files://{}", path.display()),
        }
    }
}

#[cfg(all(test, feature = "sqlite", feature = "files", feature = "postgres"))]
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
        assert_eq!(read.to_string(), "postgres://me@host:5432/db?sslmode=disable");
        assert_eq!(format!("{read:?}"), "Postgres(postgres://me@host:5432/db?sslmode=disable)");
        assert_eq!(read.reveal(), url);
        assert!(!read.is_shown_whole());
    }

    #[test]
    fn a_mistake_repeats_no_password() {
        for url in [
            "postgres://me:s3cret@x@host/db",
            "Postgres://me:s3cret@host/db",
            "me:s3cret@host/db",
            "host=localhost password=s3cret dbname=shop",
            "password=s3cret host=localhost:5432",
            "mysql://me:s3cret@host/db",
            "s3cret://x",
            "sqlite://a.db?key=s3cret",
            "files://spool?key=s3cret",
            "memory:s3cret",
        ] {
            let error = url.parse::<StoreUrl>().expect_err(url);
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
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

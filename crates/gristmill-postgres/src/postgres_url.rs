//! A PostgreSQL URL as a value that shows no password, however it is printed.
//!
//! What is shown is put together from the parts that hold none, so a part that
//! nobody thought of stays hidden. A URL in which it is not clear where the
//! password ends is refused: what is taken for its host would be shown.

use std::fmt;
use std::str::FromStr;

use gristmill_core::StoreError;

/// Words behind the `?` that may be shown. All others may hold a password
/// (`password`, `listen_url`) or are not worth a line of a log.
const SHOWN: [&str; 5] =
    ["schema", "sslmode", "statement_mode", "connections", "target_session_attrs"];

/// A PostgreSQL URL. It may hold passwords, which neither its text nor its
/// debug form shows.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

impl PostgresUrl {
    /// The whole URL, password and all: to connect, and to hand on to whoever
    /// may connect.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether what is shown is all there is: then it can be copied and used.
    #[must_use]
    pub fn is_shown_whole(&self) -> bool {
        self.to_string() == self.0
    }
}

impl FromStr for PostgresUrl {
    type Err = StoreError;

    /// # Errors
    /// In words that hold nothing of the URL: where its password ends is not
    /// known then.
    fn from_str(url: &str) -> Result<Self, StoreError> {
        let Parts { place, database, words, .. } = Parts::of(url)
            .ok_or_else(|| fault("the store's URL does not begin with postgres://"))?;
        // The driver takes all before the first '@' for user and password.
        let stray = place.matches('@').count() > 1
            || database.is_some_and(|name| name.contains('@'))
            || words.iter().any(|(name, value)| {
                name.contains('@') || (*name != "listen_url" && value.contains('@'))
            });
        if stray {
            return Err(fault(
                "the store's URL has an '@' that may belong to a password: within a user or a \
                 password write @ as %40, / as %2F, ? as %3F, & as %26 and % as %25",
            ));
        }
        let hosts = place.split_once('@').map_or(place, |(_, hosts)| hosts);
        if !hosts.split(',').all(has_sound_port) {
            return Err(fault(
                "the store's URL has a port that is not a number: it is written like \
                 postgres://user:password@host:5432/database",
            ));
        }
        Ok(PostgresUrl(url.to_owned()))
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Parts { scheme, place, database, words }) = Parts::of(&self.0) else {
            return f.write_str("postgres://");
        };
        f.write_str(scheme)?;
        match place.split_once('@') {
            None => f.write_str(place)?,
            Some((who, hosts)) => {
                write!(f, "{}@{hosts}", who.split(':').next().unwrap_or_default())?;
            }
        }
        if let Some(database) = database {
            write!(f, "/{database}")?;
        }
        let shown = words.iter().filter(|(name, _)| SHOWN.contains(name));
        for (before, (name, value)) in std::iter::once('?').chain(std::iter::repeat('&')).zip(shown)
        {
            write!(f, "{before}{name}={value}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a URL is made of.
struct Parts<'a> {
    scheme: &'a str,
    /// User, password and hosts.
    place: &'a str,
    database: Option<&'a str>,
    /// What stands behind the `?`.
    words: Vec<(&'a str, &'a str)>,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Option<Self> {
        let scheme = ["postgres://", "postgresql://"].into_iter().find(|s| url.starts_with(s))?;
        let rest = url.get(scheme.len()..)?;
        let (front, words) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, database) = match front.split_once('/') {
            Some((place, database)) => (place, Some(database)),
            None => (front, None),
        };
        let words = words
            .split('&')
            .filter(|word| !word.is_empty())
            .map(|word| word.split_once('=').unwrap_or((word, "")))
            .collect();
        Some(Parts { scheme, place, database, words })
    }
}

/// A password in the place of a port would be shown as one.
fn has_sound_port(host: &str) -> bool {
    let port = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(_, port)| port.trim_start_matches(':')),
        None => Some(host.split_once(':').map_or("", |(_, port)| port)),
    };
    port.is_some_and(|port| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn fault(words: &str) -> StoreError {
    StoreError::invalid(words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parts_without_a_password_are_shown() {
        for (url, shown) in [
            ("postgres://host/db", "postgres://host/db"),
            ("postgresql://me@h:5432,g:1/db", "postgresql://me@h:5432,g:1/db"),
            ("postgres://me:s3cret@host:5432/db", "postgres://me@host:5432/db"),
            ("postgres://me:s3%40c%2Fret@[::1]:5432/db", "postgres://me@[::1]:5432/db"),
            ("postgres://:s3cret@host", "postgres://@host"),
            (
                "postgres://h/d?schema=mill&password=s3cret&sslmode=disable",
                "postgres://h/d?schema=mill&sslmode=disable",
            ),
            ("postgres://h/d?listen_url=postgres://me:s3cret@h/d", "postgres://h/d"),
            ("postgres://h?options=s3cret", "postgres://h"),
        ] {
            let read: PostgresUrl = url.parse().expect(url);
            assert_eq!(read.to_string(), shown);
            assert_eq!(format!("{read:?}"), shown);
            assert_eq!(read.reveal(), url);
            assert_eq!(read.is_shown_whole(), url == shown, "{url}");
        }
    }

    #[test]
    fn where_a_password_ends_must_be_clear() {
        for url in [
            "postgres://me:s3@cret@host/db",
            "postgres://me:s3/cret@host/db",
            "postgres://me:s3?cret@host/db",
            "postgres://me:12?cret@host/db",
            "postgres://me:s3cret/db",
            "postgres://me:s3cret",
            "postgres://h/d?password=s3@cret",
            "postgres://[s3cret/db",
            "host=h password=s3cret",
            "s3cret",
        ] {
            let said = url.parse::<PostgresUrl>().expect_err(url).to_string();
            assert!(!said.contains("cret") && !said.contains("s3"), "{said}");
        }
    }
}

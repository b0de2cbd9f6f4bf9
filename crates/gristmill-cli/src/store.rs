//! Opening the store a command works on.
//!
//! Only commands that mean to begin something make a file. All others say
//! that there is none, so that a misspelt path is not taken for an empty
//! store.

use std::path::Path;

use gristmill::{Mill, StoreUrl};

use crate::failure::{Exit, Failure};

/// The store when nothing else is said.
pub(crate) const DEFAULT: &str = "sqlite://gristmill.db";

/// What to do when the file is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Make it.
    Create,
    /// Say so.
    Fail,
}

/// Opens a store that outlives the command.
///
/// # Errors
/// When the URL names no store, or one that is gone with the command, or the
/// store cannot be opened.
pub(crate) async fn open(url: &str, missing: Missing) -> Result<Mill, Failure> {
    let meant = url.parse::<StoreUrl>().map_err(|error| Failure::usage(error.to_string()))?;
    match meant {
        StoreUrl::Memory => Err(Failure::usage(
            "memory: is gone when this command ends; only 'up' can use it, here name a file: \
             --store sqlite://gristmill.db",
        )),
        StoreUrl::Sqlite(path) => {
            look_at(&path, missing)?;
            open_durable(url, missing).await
        }
        StoreUrl::Files(folder) => {
            look_at_folder(&folder, missing)?;
            open_durable(url, missing).await
        }
        StoreUrl::Postgres(_) => open_durable(url, missing).await,
    }
}

async fn open_durable(url: &str, missing: Missing) -> Result<Mill, Failure> {
    Ok(match missing {
        Missing::Create => Mill::open(url).await?,
        Missing::Fail => Mill::open_existing(url).await?,
    })
}

/// Opens any store, for a process that stays.
///
/// # Errors
/// When the URL names no store or the store cannot be opened.
pub(crate) async fn open_to_stay(url: &str) -> Result<Mill, Failure> {
    if let Ok(StoreUrl::Sqlite(path)) = url.parse() {
        look_at(&path, Missing::Create)?;
    }
    Ok(Mill::open(url).await?)
}

/// Says what SQLite would only call "unable to open".
fn look_at(path: &Path, missing: Missing) -> Result<(), Failure> {
    let shown = path.display();
    if path.is_dir() {
        return Err(Failure::new(
            Exit::Unusable,
            "not_a_store",
            format!("{shown} is a folder, not a store: name a file in it with --store"),
        ));
    }
    look_at_folder(path, missing)
}

/// Says what is missing.
fn look_at_folder(path: &Path, missing: Missing) -> Result<(), Failure> {
    let shown = path.display();
    if missing == Missing::Fail && !path.exists() {
        return Err(Failure::new(
            Exit::Unusable,
            "no_store",
            format!(
                "there is no store at {shown}: begin one with 'gristmill up' or 'gristmill queue \
                 add NAME', or name another with --store"
            ),
        ));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder
        && !folder.is_dir()
    {
        return Err(Failure::new(
            Exit::Unusable,
            "no_store",
            format!("{} is not a folder: make it, or name another with --store", folder.display()),
        ));
    }
    Ok(())
}

/// A URL as it may be shown.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let Some((login, place)) = rest.split_once('@') else { return url.to_owned() };
    match login.split_once(':') {
        Some((user, _)) => format!("{scheme}://{user}@{place}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn a_password_is_never_shown() {
        for (url, shown) in [
            ("sqlite://a:b@c.db", "sqlite://a@c.db"),
            ("postgres://ada:secret@host:5432/shop", "postgres://ada@host:5432/shop"),
            ("postgres://ada@host/shop", "postgres://ada@host/shop"),
            ("sqlite:///tmp/a.db", "sqlite:///tmp/a.db"),
            ("memory:", "memory:"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}

//! Opening the store a command works on.
//!
//! Only commands that mean to begin something make a file. All others say
//! that there is none, so that a misspelt path is not taken for an empty
//! store.

use std::path::Path;

use gristmill::{Mill, StoreUrl};

use crate::failure::{Exit, Failure};
use crate::progress;

/// A spool with many tasks is read whole, a server may be far away.
const OPENING: &str = "opening the store";

/// The store when nothing else is said: `sqlite://gristmill.db`.
pub(crate) fn default() -> StoreUrl {
    StoreUrl::Sqlite("gristmill.db".into())
}

/// What to do when the file is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Make it.
    Create,
    /// Say so.
    Fail,
    /// Say so, and that this command would make it with --create.
    Offer,
}

/// Opens a store that outlives the command.
///
/// # Errors
/// When the URL names a store that is gone with the command, or the store
/// cannot be opened.
pub(crate) async fn open(url: &StoreUrl, missing: Missing) -> Result<Mill, Failure> {
    match url {
        StoreUrl::Memory => {
            return Err(Failure::usage(
                "memory: is gone when this command ends; only 'up' can use it, here name a file: \
                 --store sqlite://gristmill.db",
            ));
        }
        StoreUrl::Sqlite(path) => look_at(path, missing)?,
        StoreUrl::Files(folder) => look_at_folder(folder, missing)?,
        // Only a server says whether it is there.
        _ => {}
    }
    let opening = async {
        match missing {
            Missing::Create => Mill::open_at(url).await,
            Missing::Fail | Missing::Offer => Mill::open_existing_at(url).await,
        }
    };
    Ok(progress::if_slow(OPENING, opening).await?)
}

/// Opens any store, for a process that stays.
///
/// # Errors
/// When the store cannot be opened.
pub(crate) async fn open_to_stay(url: &StoreUrl) -> Result<Mill, Failure> {
    if let StoreUrl::Sqlite(path) = url {
        look_at(path, Missing::Create)?;
    }
    Ok(progress::if_slow(OPENING, Mill::open_at(url)).await?)
}

/// Whether opening it would make it: nothing stands there yet. A server is asked only
/// when it is opened.
pub(crate) fn is_new(url: &StoreUrl) -> bool {
    match url {
        StoreUrl::Memory => true,
        StoreUrl::Sqlite(path) | StoreUrl::Files(path) => !path.exists(),
        _ => false,
    }
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
    if missing != Missing::Create && !path.exists() {
        let begin = match missing {
            Missing::Offer => "say --create to begin one with this queue in it",
            _ => "begin one with 'gristmill up' or 'gristmill queue add NAME'",
        };
        let why = format!("there is no store at {shown}: {begin}, or name another with --store");
        return Err(Failure::new(Exit::Unusable, "no_store", why));
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

//! Opening a store by its URL, as far as this program was built with it, and what
//! each kind has beyond the port.

#[cfg(any(feature = "sqlite", feature = "files", feature = "postgres", feature = "remote"))]
use std::sync::Arc;

use gristmill_core::memory::{MemoryOptions, MemoryStore};
use gristmill_core::{Clock, StoreError, Timestamp};
#[cfg(feature = "files")]
use gristmill_files::FilesStore;
#[cfg(feature = "postgres")]
use gristmill_postgres::PostgresStore;
#[cfg(feature = "remote")]
use gristmill_remote::Remote;
#[cfg(feature = "sqlite")]
use gristmill_sqlite::SqliteStore;

use crate::{Error, Mill, StoreUrl};

/// The store by its own type, where it is one of these.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extras {
    #[cfg(feature = "sqlite")]
    sqlite: Option<Arc<SqliteStore>>,
    #[cfg(feature = "files")]
    files: Option<Arc<FilesStore>>,
    #[cfg(feature = "postgres")]
    postgres: Option<Arc<PostgresStore>>,
    #[cfg(feature = "remote")]
    remote: Option<Arc<Remote>>,
}

/// The variable of the environment that holds a service's token.
#[cfg(feature = "remote")]
const TOKEN: &str = "GRISTMILL_TOKEN";
/// How they begin: workers written in shell have a claim's token under the same name.
#[cfg(feature = "remote")]
const TOKENS: &str = "gristmill_";

/// Opens what the URL names.
#[cfg_attr(
    not(any(feature = "sqlite", feature = "files", feature = "postgres", feature = "remote")),
    expect(unused_variables, reason = "memory is always made anew")
)]
pub(crate) async fn open(url: &StoreUrl, create: bool) -> Result<Mill, Error> {
    match url.clone() {
        StoreUrl::Memory => {
            Ok(Mill::over(std::sync::Arc::new(MemoryStore::new(MemoryOptions::default()))))
        }
        #[cfg(feature = "sqlite")]
        StoreUrl::Sqlite(path) => {
            let options = gristmill_sqlite::Options { create, ..Default::default() };
            in_a_folder(&path)?;
            let opened = on_its_own_thread(move || SqliteStore::open(path, options)).await?;
            Ok(Mill::over_sqlite(Arc::new(opened)))
        }
        #[cfg(feature = "files")]
        StoreUrl::Files(folder) => {
            let options = gristmill_files::Options { create, ..Default::default() };
            let opened = on_its_own_thread(move || FilesStore::open(folder, options)).await?;
            Ok(Mill::over_files(Arc::new(opened)))
        }
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(url) => {
            let options = gristmill_postgres::Options { migrate: create, ..Default::default() };
            let opened = PostgresStore::open(url.reveal(), options).await?;
            Ok(Mill::over_postgres(Arc::new(opened)))
        }
        #[cfg(feature = "remote")]
        StoreUrl::Remote(address) => {
            // Where the URL has none: one that is not in a list of processes.
            let token = std::env::var(TOKEN).ok().filter(|token| token.starts_with(TOKENS));
            let options = gristmill_remote::Options::default();
            let opened = Remote::open(address.or_token(token), options).await?;
            Ok(Mill::over_remote(Arc::new(opened)))
        }
    }
}

/// Says what SQLite would only call "unable to open".
#[cfg(feature = "sqlite")]
fn in_a_folder(path: &std::path::Path) -> Result<(), StoreError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.exists() => Err(StoreError::invalid(format!(
            "there is no folder '{}' for the store's file: make it, or name another",
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// Opening reads, and at the first time writes, the disk: not on a thread that
/// drives other people's futures.
#[cfg(any(feature = "sqlite", feature = "files"))]
async fn on_its_own_thread<T: Send + 'static>(
    open: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let opened = tokio::task::spawn_blocking(open).await;
    opened.map_err(|e| StoreError::unavailable("opening was ended").caused_by(e))?
}

#[cfg(feature = "sqlite")]
impl Mill {
    /// A mill over an opened SQLite store, whose extras stay reachable.
    #[must_use]
    pub fn over_sqlite(sqlite: Arc<SqliteStore>) -> Self {
        let mut mill = Self::over(sqlite.clone());
        mill.extras.sqlite = Some(sqlite);
        mill
    }

    /// The SQLite store, where it is one: backup, check.
    #[must_use]
    pub fn sqlite(&self) -> Option<&Arc<SqliteStore>> {
        self.extras.sqlite.as_ref()
    }
}

#[cfg(feature = "files")]
impl Mill {
    /// A mill over an opened file spool, whose extras stay reachable.
    #[must_use]
    pub fn over_files(files: Arc<FilesStore>) -> Self {
        let mut mill = Self::over(files.clone());
        mill.extras.files = Some(files);
        mill
    }

    /// The file spool, where it is one: check, and what was set aside.
    #[must_use]
    pub fn files(&self) -> Option<&Arc<FilesStore>> {
        self.extras.files.as_ref()
    }
}

#[cfg(feature = "postgres")]
impl Mill {
    /// A mill over an opened PostgreSQL store, whose extras stay reachable.
    #[must_use]
    pub fn over_postgres(postgres: Arc<PostgresStore>) -> Self {
        let mut mill = Self::over(postgres.clone());
        mill.extras.postgres = Some(postgres);
        mill
    }

    /// The PostgreSQL store, where it is one: its check, and whether wake-ups are
    /// heard.
    #[must_use]
    pub fn postgres(&self) -> Option<&Arc<PostgresStore>> {
        self.extras.postgres.as_ref()
    }
}

#[cfg(feature = "remote")]
impl Mill {
    /// A mill over the opened store of a service.
    #[must_use]
    pub fn over_remote(remote: Arc<Remote>) -> Self {
        let mut mill = Self::over(remote.clone());
        mill.extras.remote = Some(remote);
        mill
    }

    /// The store of a service, where it is one.
    #[must_use]
    pub fn remote(&self) -> Option<&Arc<Remote>> {
        self.extras.remote.as_ref()
    }
}

impl Mill {
    /// Now, by the clock that decides what is due.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn time(&self) -> Result<Timestamp, StoreError> {
        self.now(&gristmill_core::SystemClock::default()).await
    }

    /// Now, by the clock that decides what is due: on a server its own, elsewhere
    /// the one that this process has.
    #[cfg_attr(
        not(any(feature = "postgres", feature = "remote")),
        expect(clippy::unused_async, reason = "only a server has to be asked")
    )]
    pub(crate) async fn now(&self, ours: &dyn Clock) -> Result<Timestamp, StoreError> {
        #[cfg(feature = "postgres")]
        if let Some(server) = self.postgres() {
            return server.time().await;
        }
        #[cfg(feature = "remote")]
        if let Some(service) = self.remote() {
            return service.time().await;
        }
        Ok(ours.now())
    }
}

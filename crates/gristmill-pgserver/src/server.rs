//! The server that all tests of a run share.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::bouncer;
use crate::cluster::Cluster;
use crate::database::Database;
use crate::place::Place;
use crate::private::PrivateServer;
use crate::watchdog;
use crate::{Error, Result};

/// How long the shared server waits for the next user before it ends. Between
/// the tests of two crates cargo may have to link.
const GRACE_SECONDS: u32 = 60;

const IN_USE: &str = "use.lock";

/// A running server. Clones stand for the same one; it is in use while one of
/// them lives.
#[derive(Clone, Debug)]
pub struct Server {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    place: Place,
    cluster: Cluster,
    /// Held, shared, so that the watchdog knows of us.
    _in_use: File,
}

impl Server {
    /// The one server of this test run, started if there is none.
    ///
    /// # Errors
    /// One sentence when PostgreSQL is not installed or does not start.
    pub fn shared() -> Result<Self> {
        let place = Place::open(Account::choose()?)?;
        let _starting = place.lock("start.lock")?;
        // Waits here while a watchdog ends the server before this one.
        let in_use = place.lock_shared(IN_USE)?;
        // Of each version its own: who asks for another one gets no other.
        let binaries = Binaries::find()?;
        let standing = place.current_run(binaries.label());
        let found =
            standing.as_deref().map(|run| Cluster::find(&place, run, &binaries)).transpose()?;
        let watch =
            |run: &Path| watchdog::ensure(place.account(), run, &place.path(IN_USE), GRACE_SECONDS);
        let cluster = match found.flatten() {
            Some(cluster) => {
                watch(cluster.run_folder())?;
                cluster
            }
            None => {
                // A life that ended badly: a power cut, a killed server.
                if let Some(run) = standing {
                    fs::remove_dir_all(&run).map_err(|error| Error::at(&run, &error))?;
                }
                let run = place.new_run()?;
                place.set_current_run(binaries.label(), &run)?;
                watchdog::mark_used(&run);
                watch(&run)?;
                Cluster::create(&place, &run, &[], &[])?
            }
        };
        Ok(Self::new(place, cluster, in_use))
    }

    /// A server of one's own, for tests that stop, restart or kill it.
    ///
    /// # Errors
    /// As [`Server::shared`].
    pub fn private() -> Result<PrivateServer> {
        PrivateServer::start_with(&[], &[])
    }

    /// A server of one's own with settings of `postgresql.conf` on top.
    ///
    /// # Errors
    /// As [`Server::shared`].
    pub fn private_with(settings: &[(&str, &str)]) -> Result<PrivateServer> {
        PrivateServer::start_with(settings, &[])
    }

    /// A server of one's own that standbys can follow
    /// ([`PrivateServer::standby`]).
    ///
    /// # Errors
    /// As [`Server::shared`].
    pub fn primary() -> Result<PrivateServer> {
        let settings = [
            ("wal_level", "replica"),
            ("max_wal_senders", "10"),
            // A checkpoint for one new standby must not take away what another
            // one is about to need.
            ("wal_keep_size", "256MB"),
        ];
        PrivateServer::start_with(&settings, &[])
    }

    /// A server of one's own that encrypts, with this certificate and key.
    ///
    /// # Errors
    /// As [`Server::shared`].
    pub fn private_with_tls(certificate: &str, key: &str) -> Result<PrivateServer> {
        // The names that PostgreSQL looks for by itself.
        let files = [("server.crt", certificate), ("server.key", key)];
        PrivateServer::start_with(&[("ssl", "on")], &files)
    }

    pub(crate) fn new(place: Place, cluster: Cluster, in_use: File) -> Self {
        watchdog::mark_used(cluster.run_folder());
        Self { inner: Arc::new(Inner { place, cluster, _in_use: in_use }) }
    }

    /// The URL of the superuser on the database `postgres`, over the private
    /// socket.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The URL of a database, over the private socket.
    #[must_use]
    pub fn url_of(&self, database: &str) -> String {
        self.inner.cluster.url(database)
    }

    /// The URL of a database over 127.0.0.1, with the password.
    #[must_use]
    pub fn tcp_url_of(&self, database: &str) -> String {
        self.inner.cluster.tcp_url(database)
    }

    /// The same over these ports in this order: several servers, or a
    /// [`Proxy`](crate::Proxy) before one.
    #[must_use]
    pub fn tcp_url_over(&self, ports: &[u16], database: &str) -> String {
        self.inner.cluster.tcp_url_over(ports, database)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.inner.cluster.port()
    }

    /// The URL of a database through a pgbouncer in transaction mode, which is
    /// started if there is none yet and ends with the server.
    ///
    /// # Errors
    /// One sentence when pgbouncer is not installed or does not start.
    pub fn pgbouncer_url(&self, database: &str) -> Result<String> {
        bouncer::url(&self.inner.place, &self.inner.cluster, database)
    }

    /// A fresh database, dropped with the value.
    ///
    /// It is a copy of a template that `prepare` fills once, given the
    /// template's URL; `prepare` runs on a thread of its own and may block.
    /// Templates of different programs are kept apart, so a rebuilt test never
    /// meets the template of its earlier self.
    ///
    /// # Errors
    /// What `prepare` or the server said.
    pub fn database(
        &self,
        template: &str,
        prepare: impl FnOnce(&str) -> Result<()> + Send,
    ) -> Result<Database> {
        Database::create(self, template, prepare)
    }

    /// Runs statements with `psql` and answers what it printed, unaligned and
    /// without headings.
    ///
    /// # Errors
    /// What `psql` wrote to stderr.
    pub fn psql(&self, database: &str, sql: &str) -> Result<String> {
        self.inner.cluster.psql(database, sql)
    }

    /// PostgreSQL's own program of this name, of the version that runs.
    #[must_use]
    pub fn program(&self, name: &str) -> std::path::PathBuf {
        self.inner.cluster.program(name)
    }

    pub(crate) fn place(&self) -> &Place {
        &self.inner.place
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.inner.cluster
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The minute of grace starts when the last user leaves.
        watchdog::mark_used(self.cluster.run_folder());
    }
}

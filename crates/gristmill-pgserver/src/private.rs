//! A server that belongs to one test, which may stop, restart and kill it.

use std::fs;
use std::ops::Deref;
use std::path::Path;

use crate::Result;
use crate::account::Account;
use crate::cluster::Cluster;
use crate::place::Place;
use crate::server::Server;
use crate::watchdog;

/// A server of one's own. It ends, and its data with it, when the value is
/// dropped or the process dies.
#[derive(Debug)]
pub struct PrivateServer {
    server: Server,
}

impl PrivateServer {
    pub(crate) fn start_with(settings: &[(&str, &str)], files: &[(&str, &str)]) -> Result<Self> {
        Self::make(|place, run| Cluster::create(place, run, settings, files))
    }

    fn make(cluster: impl FnOnce(&Place, &Path) -> Result<Cluster>) -> Result<Self> {
        let place = Place::open(Account::choose()?)?;
        let run = place.new_run()?;
        let lock = format!("{}.lock", run.file_name().unwrap_or_default().to_string_lossy());
        let in_use = place.lock_shared(&lock)?;
        watchdog::ensure(place.account(), &run, &place.path(&lock), 0)?;
        let cluster = cluster(&place, &run)?;
        Ok(Self { server: Server::new(place, cluster, in_use) })
    }

    /// A standby that follows this server, which was started by
    /// [`Server::primary`] and knows it by this name.
    ///
    /// # Errors
    /// What `pg_basebackup` said, or the end of the standby's log.
    pub fn standby(&self, name: &str) -> Result<PrivateServer> {
        Self::make(|_, run| self.cluster().follow(run, name))
    }

    /// Makes a standby a server of its own, which takes writes.
    ///
    /// # Errors
    /// What `pg_ctl` said.
    pub fn promote(&self) -> Result<()> {
        self.cluster().promote()
    }

    /// Takes no more writes, and closes no connection: what clients see of a
    /// primary that was demoted without a restart.
    ///
    /// # Errors
    /// What `psql` wrote to stderr.
    pub fn demote(&self) -> Result<()> {
        self.set("default_transaction_read_only", "on")
    }

    /// Changes a setting that takes a reload.
    ///
    /// # Errors
    /// What `psql` wrote to stderr.
    pub fn set(&self, name: &str, value: &str) -> Result<()> {
        let value = value.replace('\'', "''");
        self.psql("postgres", &format!("ALTER SYSTEM SET {name} = '{value}'"))?;
        self.cluster().reload()
    }

    /// Stops every process of the server where it is: connections stay, new ones
    /// are taken by the kernel, and nothing answers. Dropping thaws it.
    ///
    /// # Errors
    /// When it does not run.
    pub fn freeze(&self) -> Result<()> {
        self.cluster().freeze()
    }

    /// Lets a frozen server go on.
    ///
    /// # Errors
    /// When it does not run.
    pub fn thaw(&self) -> Result<()> {
        self.cluster().thaw()
    }

    /// Starts the server again and waits until it takes connections.
    ///
    /// # Errors
    /// The end of the server's log.
    pub fn start(&self) -> Result<()> {
        self.cluster().start()
    }

    /// Stops the server in order: clients are cut off, all data is written.
    ///
    /// # Errors
    /// What `pg_ctl` said.
    pub fn stop(&self) -> Result<()> {
        self.cluster().stop("fast")
    }

    /// Stops the server as a crash would, without writing anything more.
    ///
    /// # Errors
    /// What `pg_ctl` said.
    pub fn stop_immediately(&self) -> Result<()> {
        self.cluster().stop("immediate")
    }

    /// Stops the server as a crash would, and starts it into recovery.
    ///
    /// # Errors
    /// What `pg_ctl` said, or the end of the server's log.
    pub fn restart_immediately(&self) -> Result<()> {
        self.stop_immediately()?;
        self.start()
    }

    /// Kills the server's first process with SIGKILL; [`start`](Self::start)
    /// brings the server back.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill(&self) -> Result<()> {
        self.cluster().kill()
    }
}

impl Deref for PrivateServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        let run = self.cluster().run_folder().to_owned();
        // It may be stopped already; the folder must go in any case, and with
        // it the watchdog.
        crate::bouncer::stop(self.cluster());
        // A frozen one hears nothing.
        let _ = self.thaw();
        let _ = self.stop_immediately();
        let _ = fs::remove_dir_all(&run);
        let _ = fs::remove_file(run.with_extension("lock"));
    }
}

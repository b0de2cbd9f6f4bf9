//! A server that belongs to one test, which may stop, restart and kill it.

use std::fs;
use std::ops::Deref;

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
        let place = Place::open(Account::choose()?)?;
        let run = place.new_run()?;
        let lock = format!("{}.lock", run.file_name().unwrap_or_default().to_string_lossy());
        let in_use = place.lock_shared(&lock)?;
        watchdog::ensure(place.account(), &run, &place.path(&lock), 0)?;
        let cluster = Cluster::create(&place, &run, settings, files)?;
        Ok(Self { server: Server::new(place, cluster, in_use) })
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
        let _ = self.stop_immediately();
        let _ = fs::remove_dir_all(&run);
        let _ = fs::remove_file(run.with_extension("lock"));
    }
}

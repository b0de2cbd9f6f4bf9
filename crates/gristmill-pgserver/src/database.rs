//! A database of one test, copied from a template.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::thread;

use crate::place::unique;
use crate::server::Server;
use crate::{Error, Result};

/// A database that nobody else uses. Dropped with the value, whoever is still
/// connected.
#[derive(Debug)]
pub struct Database {
    server: Server,
    name: String,
}

impl Database {
    pub(crate) fn create(
        server: &Server,
        template: &str,
        prepare: impl FnOnce(&str) -> Result<()> + Send,
    ) -> Result<Self> {
        let template = ensure_template(server, template, prepare)?;
        let name = format!("t-{}", unique());
        server.psql("postgres", &format!("CREATE DATABASE \"{name}\" TEMPLATE \"{template}\""))?;
        Ok(Self { server: server.clone(), name })
    }

    /// Its name within the server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server it stands in.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Its URL over the private socket.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url_of(&self.name)
    }

    /// Its URL over 127.0.0.1, with the password.
    #[must_use]
    pub fn tcp_url(&self) -> String {
        self.server.tcp_url_of(&self.name)
    }

    /// Its URL through a pgbouncer in transaction mode.
    ///
    /// # Errors
    /// As [`Server::pgbouncer_url`].
    pub fn pgbouncer_url(&self) -> Result<String> {
        self.server.pgbouncer_url(&self.name)
    }

    /// Runs statements in it, as [`Server::psql`].
    ///
    /// # Errors
    /// What `psql` wrote to stderr.
    pub fn psql(&self, sql: &str) -> Result<String> {
        self.server.psql(&self.name, sql)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A stopped server has nothing to drop from; the shared one is thrown
        // away whole in the end.
        let drop = format!("DROP DATABASE IF EXISTS \"{}\" WITH (FORCE)", self.name);
        let _ = self.server.psql("postgres", &drop);
    }
}

/// The name of the template, which stands and is filled afterwards.
fn ensure_template(
    server: &Server,
    name: &str,
    prepare: impl FnOnce(&str) -> Result<()> + Send,
) -> Result<String> {
    let template = format!("template-{name}-{:x}", program_fingerprint());
    let ready = server.cluster().run_folder().join(format!("{template}.ready"));
    if ready.exists() {
        return Ok(template);
    }
    let _preparing = server.place().lock("template.lock")?;
    if ready.exists() {
        return Ok(template);
    }
    // One that was left half filled by a killed process.
    server.psql("postgres", &format!("DROP DATABASE IF EXISTS \"{template}\" WITH (FORCE)"))?;
    server.psql("postgres", &format!("CREATE DATABASE \"{template}\""))?;
    let url = server.url_of(&template);
    thread::scope(|scope| scope.spawn(|| prepare(&url)).join())
        .map_err(|_| Error::new(format!("preparing the template {name} panicked")))??;
    // A connection into a template would make every copy of it fail.
    server
        .psql("postgres", &format!("ALTER DATABASE \"{template}\" WITH ALLOW_CONNECTIONS false"))?;
    fs::write(&ready, "").map_err(|error| Error::at(&ready, &error))?;
    Ok(template)
}

/// Tells builds of test programs apart.
fn program_fingerprint() -> u64 {
    let Ok(metadata) = env::current_exe().and_then(fs::metadata) else {
        return u64::from(std::process::id());
    };
    // The modification time to the nanosecond, and the file itself.
    let parts = [metadata.ino(), metadata.len(), metadata.mtime().unsigned_abs()];
    parts.iter().fold(metadata.mtime_nsec().unsigned_abs(), |hash, part| {
        (hash ^ part).wrapping_mul(0x0100_0000_01b3)
    })
}

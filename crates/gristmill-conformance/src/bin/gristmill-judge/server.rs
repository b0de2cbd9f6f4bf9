//! The server of a run on PostgreSQL: its own, so that harm may be done to it.

use std::time::Duration;

use gristmill_pgserver::{PrivateServer, Proxy, Server};

use crate::Result;

/// The name by which a server knows its standby.
const STANDBY: &str = "standby";

/// One server, with a standby where it is to be promoted, and a proxy where
/// connections are to fall silent.
#[derive(Debug)]
pub(crate) struct Database {
    server: PrivateServer,
    standby: Option<PrivateServer>,
    proxy: Option<Proxy>,
}

impl Database {
    pub(crate) fn start(with_standby: bool, with_proxy: bool) -> Result<Self> {
        let words = |error: gristmill_pgserver::Error| error.to_string();
        if !with_standby {
            let server = Server::private().map_err(words)?;
            let proxy = with_proxy.then(|| Proxy::to(server.port())).transpose().map_err(words)?;
            return Ok(Database { server, standby: None, proxy });
        }
        let server = Server::primary().map_err(words)?;
        let standby = server.standby(STANDBY).map_err(words)?;
        // What is acknowledged is there before it is acknowledged.
        let names = format!("FIRST 1 ({STANDBY})");
        server.set("synchronous_standby_names", &names).map_err(words)?;
        Ok(Database { server, standby: Some(standby), proxy: None })
    }

    /// Where clients find it, whichever server it is.
    pub(crate) fn url(&self) -> String {
        match (&self.standby, &self.proxy) {
            (Some(standby), _) => {
                self.server.tcp_url_over(&[self.server.port(), standby.port()], "postgres")
            }
            (None, Some(proxy)) => self.server.tcp_url_over(&[proxy.port()], "postgres"),
            (None, None) => self.server.url(),
        }
    }

    /// Its socket, for clients that speak its protocol; none where it may be left.
    pub(crate) fn socket(&self) -> Option<String> {
        self.standby.is_none().then(|| self.server.url())
    }

    pub(crate) fn has_standby(&self) -> bool {
        self.standby.is_some()
    }

    /// Ends it as a crash would, in one way or the other, and brings it back.
    pub(crate) fn kill(&self, at_once: bool) -> Result<()> {
        let words = |error: gristmill_pgserver::Error| error.to_string();
        if at_once {
            return self.server.restart_immediately().map_err(words);
        }
        self.server.kill().map_err(words)?;
        self.server.start().map_err(words)
    }

    /// Lets it stand still for this long.
    pub(crate) fn freeze(&self, time: Duration) -> Result<()> {
        self.server.freeze().map_err(|error| error.to_string())?;
        std::thread::sleep(time);
        self.server.thaw().map_err(|error| error.to_string())
    }

    /// Ends about half of its connections, whatever they are at.
    pub(crate) fn cut(&self) -> Result<()> {
        let words = "pg_terminate_backend(pid)";
        let whom = "datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.5";
        let ask = ["SELECT", "count(", words, ") FROM pg_stat_activity WHERE", whom].join(" ");
        self.server.psql("postgres", &ask).map(drop).map_err(|error| error.to_string())
    }

    /// Connections that stand carry nothing any more.
    pub(crate) fn stall(&self) {
        if let Some(proxy) = &self.proxy {
            proxy.stall();
        }
    }

    /// The server dies and its standby takes over.
    pub(crate) fn promote(&mut self) -> Result<()> {
        let words = |error: gristmill_pgserver::Error| error.to_string();
        let Some(standby) = self.standby.take() else { return Ok(()) };
        self.server.kill().map_err(words)?;
        standby.promote().map_err(words)?;
        standby.set("synchronous_standby_names", "").map_err(words)?;
        self.server = standby;
        Ok(())
    }
}

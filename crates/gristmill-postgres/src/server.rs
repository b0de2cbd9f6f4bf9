//! The server that a URL names, and how a connection to it is made.

use std::time::Duration;

use gristmill_core::{Result, StoreError};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};

use crate::errors::connecting;
use crate::ssl_mode::SslMode;
#[cfg(feature = "tls")]
use crate::tls::{self, Connector};
#[cfg(not(feature = "tls"))]
use tokio_postgres::NoTls as Connector;

/// The part of a connection that has to be driven.
pub(crate) type Link = Connection<Socket, <Connector as MakeTlsConnect<Socket>>::Stream>;

/// An address with credentials, and whom to trust there.
#[derive(Clone)]
pub(crate) struct Server {
    config: Config,
    connector: Connector,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The driver's own words leave the password out.
        self.config.fmt(f)
    }
}

impl Server {
    /// Reads the authorities' file, if the mode needs it.
    pub(crate) fn new(mut config: Config, mode: SslMode, root_cert: Option<&str>) -> Result<Self> {
        mode.check(root_cert)?;
        mode.tell(&mut config);
        #[cfg(feature = "tls")]
        let connector = tls::connector(mode, root_cert)?;
        #[cfg(not(feature = "tls"))]
        let connector = Connector;
        Ok(Server { config, connector })
    }

    /// Under another name in the server's list of connections.
    pub(crate) fn named(mut self, application: &str) -> Self {
        self.config.application_name(application);
        self
    }

    /// A connection, or what is in its way.
    pub(crate) async fn connect(&self) -> Result<(Client, Link)> {
        let limit = self.patience();
        let made =
            tokio::time::timeout(limit, self.config.connect(Connector::clone(&self.connector)));
        match made.await {
            Ok(made) => made.map_err(|e| connecting(&e)),
            Err(_) => Err(StoreError::Unavailable(format!("no connection within {limit:?}"))),
        }
    }

    /// How long one that answers at all may take with what makes a connection.
    pub(crate) fn patience(&self) -> Duration {
        let limit = self.config.get_connect_timeout().copied().unwrap_or_default();
        limit.saturating_mul(2)
    }

    #[cfg(test)]
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }
}

//! The server that a URL names, or the several that stand in for each other,
//! and how a connection is made.
//!
//! Each host has a limit of its own for all of it: the way there, encryption,
//! the password and the first answer. The one that was good the last time is
//! asked first. The others are not kept waiting by one that is silent.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use gristmill_core::{Result, StoreError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};

use crate::driver::Driver;
use crate::errors::{connecting, refuses_options};
use crate::line::Line;
use crate::session::{self, Session};
use crate::ssl_mode::SslMode;
#[cfg(feature = "tls")]
use crate::tls::{self, Connector};
#[cfg(not(feature = "tls"))]
use tokio_postgres::NoTls as Connector;

/// A host that has not answered by then is not waited for alone.
const HEAD_START: Duration = Duration::from_millis(300);

/// The part of a connection that has to be driven.
pub(crate) type Link = Connection<Socket, <Connector as MakeTlsConnect<Socket>>::Stream>;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Reading: where no server takes writes, any one will do.
    Any,
    /// Writing.
    Write,
}

/// What is asked of a new connection.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) need: Need,
    /// How long the server may go on with a statement; nothing behind a pooler,
    /// which would hand it on to others.
    pub(crate) limit: Option<Duration>,
    /// Where notifications go.
    pub(crate) heard: Option<mpsc::Sender<String>>,
}

/// A connection that was made.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) client: Client,
    pub(crate) line: Line,
    pub(crate) session: Session,
    /// It takes no writes, and stands in only because none does.
    pub(crate) is_spare: bool,
}

/// Addresses with credentials, and whom to trust there.
#[derive(Clone)]
pub(crate) struct Server {
    /// One for each host.
    hosts: Arc<[Config]>,
    connector: Connector,
    /// Whether a server that takes no writes is passed over.
    must_write: bool,
    learned: Arc<Learned>,
}

/// What earlier connections taught.
#[derive(Debug, Default)]
struct Learned {
    /// The host that was good the last time.
    good: AtomicUsize,
    /// A pooler is between, which refuses what it does not know.
    refuses_options: AtomicBool,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The driver's own words leave the password out.
        f.debug_list().entries(self.hosts.iter()).finish()
    }
}

impl Server {
    /// Reads the authorities' file, if the mode needs it. `must_write`: whether
    /// only a server that takes writes will do; by default where there are
    /// several.
    pub(crate) fn new(
        mut config: Config,
        mode: SslMode,
        root_cert: Option<&str>,
        must_write: Option<bool>,
    ) -> Result<Self> {
        mode.check(root_cert)?;
        mode.tell(&mut config);
        #[cfg(feature = "tls")]
        let connector = tls::connector(mode, root_cert)?;
        #[cfg(not(feature = "tls"))]
        let connector = Connector;
        let hosts: Arc<[Config]> = each(&config)?.into();
        let must_write = must_write.unwrap_or(hosts.len() > 1);
        Ok(Server { hosts, connector, must_write, learned: Arc::default() })
    }

    /// Under another name in the server's list of connections.
    pub(crate) fn named(mut self, application: &str) -> Self {
        let named = |config: &Config| {
            let mut config = config.clone();
            config.application_name(application);
            config
        };
        self.hosts = self.hosts.iter().map(named).collect();
        self
    }

    /// A connection, or what is in its way. To be run on the driver's thread.
    pub(crate) async fn reach(&self, driver: &Driver, wanted: Wanted) -> Result<Reached> {
        let count = self.hosts.len();
        let first = self.learned.good.load(Ordering::Relaxed);
        let mut order = (0..count).map(|nth| (first + nth) % count);
        let mut under_way = JoinSet::new();
        let (mut spare, mut faults) = (None, Vec::new());
        loop {
            if let Some(host) = order.next() {
                let (server, driver, wanted) = (self.clone(), driver.clone(), wanted.clone());
                under_way
                    .spawn(async move { (host, server.at_host(host, &driver, &wanted).await) });
            }
            let is_last = order.len() == 0;
            // A reader who has somebody to ask waits no longer for the others.
            let is_served = spare.is_some() && wanted.need == Need::Any;
            let ended = if is_last && !is_served {
                under_way.join_next().await
            } else {
                match timeout(HEAD_START, under_way.join_next()).await {
                    Ok(ended) => ended,
                    Err(_) if is_last => break,
                    Err(_) => continue,
                }
            };
            match ended {
                None => break,
                Some(Ok((host, Ok(reached)))) if !self.passes_over(&reached) => {
                    self.learned.good.store(host, Ordering::Relaxed);
                    return Ok(reached);
                }
                Some(Ok((host, Ok(reached)))) => {
                    faults.push((host, StoreError::unavailable("it takes no writes".to_owned())));
                    spare.get_or_insert(reached);
                }
                Some(Ok((host, Err(error)))) => faults.push((host, error)),
                Some(Err(error)) => {
                    let why = "what made a connection ended early";
                    return Err(StoreError::unavailable(why).caused_by(error));
                }
            }
        }
        match spare {
            Some(spare) if wanted.need == Need::Any => Ok(Reached { is_spare: true, ..spare }),
            _ => Err(self.told(faults)),
        }
    }

    fn passes_over(&self, reached: &Reached) -> bool {
        self.must_write && reached.session.is_read_only
    }

    /// Why nobody was reached. One that may be there later makes all of it worth
    /// another try.
    fn told(&self, mut faults: Vec<(usize, StoreError)>) -> StoreError {
        if faults.len() < 2 {
            let first = faults.pop().map(|(_, error)| error);
            return first.unwrap_or_else(|| StoreError::unavailable("no host".to_owned()));
        }
        faults.sort_by_key(|(host, _)| *host);
        let words = |(host, error): &(usize, StoreError)| {
            let host = self.hosts.get(*host).map(address).unwrap_or_default();
            match error {
                StoreError::Unavailable(words) => format!("{host}: {words:#}"),
                error => format!("{host}: {error:#}"),
            }
        };
        let all: Vec<String> = faults.iter().map(words).collect();
        if !faults.iter().any(|(_, error)| error.is_retryable())
            && let Some((_, first)) = faults.into_iter().next()
        {
            return first;
        }
        StoreError::unavailable(all.join("; "))
    }

    /// A connection to one host, whichever of its addresses answers.
    async fn at_host(&self, host: usize, driver: &Driver, wanted: &Wanted) -> Result<Reached> {
        let none = || StoreError::unavailable("there is no such host".to_owned());
        let config = self.hosts.get(host).ok_or_else(none)?;
        let limit = patience(config);
        let late = || StoreError::unavailable(format!("no connection within {limit:?}"));
        let addresses = timeout(limit, addresses(config)).await.map_err(|_| late())??;
        let mut fault = none();
        for address in addresses {
            let mut config = config.clone();
            if let Some(address) = address {
                config.hostaddr(address);
            }
            match timeout(limit, self.at_address(config, driver, wanted)).await {
                Ok(Ok(reached)) => return Ok(reached),
                Ok(Err(error)) => fault = error,
                Err(_) => fault = late(),
            }
        }
        Err(fault)
    }

    async fn at_address(
        &self,
        config: Config,
        driver: &Driver,
        wanted: &Wanted,
    ) -> Result<Reached> {
        let (client, link) = self.connect(config, wanted.limit).await?;
        let line = Line::start(driver, link, wanted.heard.clone());
        let session = session::look(&client).await?;
        Ok(Reached { client, line, session, is_spare: false })
    }

    async fn connect(&self, config: Config, limit: Option<Duration>) -> Result<(Client, Link)> {
        let with = limit.filter(|_| !self.learned.refuses_options.load(Ordering::Relaxed));
        if let Some(limit) = with {
            let mut asking = config.clone();
            let theirs = config.get_options().unwrap_or_default();
            // The last word counts, and it is theirs.
            asking.options(format!("{} {theirs}", session::startup(limit)).trim_end());
            match asking.connect(Connector::clone(&self.connector)).await {
                Err(error) if refuses_options(&error) => {
                    self.learned.refuses_options.store(true, Ordering::Relaxed);
                }
                made => return made.map_err(connecting),
            }
        }
        config.connect(Connector::clone(&self.connector)).await.map_err(connecting)
    }

    /// A bare connection to the first host that takes one, driven by the caller.
    pub(crate) async fn connect_bare(&self) -> Result<(Client, Link)> {
        let mut fault = StoreError::unavailable("no host".to_owned());
        for config in self.hosts.iter() {
            match timeout(patience(config), self.connect(config.clone(), None)).await {
                Ok(Ok(made)) => return Ok(made),
                Ok(Err(error)) => fault = error,
                Err(_) => fault = StoreError::unavailable("no connection in time".to_owned()),
            }
        }
        Err(fault)
    }

    #[cfg(test)]
    pub(crate) fn config(&self) -> &Config {
        self.hosts.first().expect("a host")
    }

    #[cfg(test)]
    pub(crate) fn hosts(&self) -> Vec<String> {
        self.hosts.iter().map(address).collect()
    }

    #[cfg(test)]
    pub(crate) fn must_write(&self) -> bool {
        self.must_write
    }
}

/// How long one host may take with all that makes a connection.
fn patience(config: &Config) -> Duration {
    config.get_connect_timeout().copied().unwrap_or(Duration::from_secs(5))
}

/// A host as people write it.
fn address(config: &Config) -> String {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match (config.get_hosts().first(), config.get_hostaddrs().first()) {
        (Some(Host::Tcp(name)), _) => format!("{name}:{port}"),
        #[cfg(unix)]
        (Some(Host::Unix(path)), _) => format!("{}:{port}", path.display()),
        (None, Some(address)) => format!("{address}:{port}"),
        (None, None) => format!("port {port}"),
    }
}

/// Where a host is; nothing when the driver needs no help to find it.
async fn addresses(config: &Config) -> Result<Vec<Option<IpAddr>>> {
    let (Some(Host::Tcp(name)), None) =
        (config.get_hosts().first(), config.get_hostaddrs().first())
    else {
        return Ok(vec![None]);
    };
    let lost =
        |error| StoreError::unavailable(format!("'{name}' cannot be found")).caused_by(error);
    let found = tokio::net::lookup_host((name.as_str(), 0)).await.map_err(lost)?;
    let mut addresses: Vec<_> = found.map(|address| Some(address.ip())).collect();
    addresses.dedup();
    Ok(addresses)
}

/// One configuration for each host of this one.
fn each(all: &Config) -> Result<Vec<Config>> {
    let fault = |words: &str| StoreError::invalid(format!("the store's URL: {words}"));
    let (names, numbers, ports) = (all.get_hosts(), all.get_hostaddrs(), all.get_ports());
    let count = names.len().max(numbers.len());
    if count == 0 {
        return Err(fault("it names no host"));
    }
    if !names.is_empty() && !numbers.is_empty() && names.len() != numbers.len() {
        return Err(fault("each host needs its hostaddr"));
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(fault("each host needs its port"));
    }
    let one = |nth: usize| {
        let mut config = without_hosts(all);
        match names.get(nth) {
            Some(Host::Tcp(name)) => {
                config.host(name);
            }
            #[cfg(unix)]
            Some(Host::Unix(path)) => {
                config.host_path(path);
            }
            None => {}
        }
        if let Some(number) = numbers.get(nth) {
            config.hostaddr(*number);
        }
        if let Some(port) = ports.get(nth).or_else(|| ports.first()) {
            config.port(*port);
        }
        config
    };
    Ok((0..count).map(one).collect())
}

/// The same but for where it is: the driver can add hosts and not take any away.
fn without_hosts(all: &Config) -> Config {
    let mut config = Config::new();
    if let Some(user) = all.get_user() {
        config.user(user);
    }
    if let Some(password) = all.get_password() {
        config.password(password);
    }
    if let Some(name) = all.get_dbname() {
        config.dbname(name);
    }
    if let Some(options) = all.get_options() {
        config.options(options);
    }
    if let Some(name) = all.get_application_name() {
        config.application_name(name);
    }
    if let Some(limit) = all.get_connect_timeout() {
        config.connect_timeout(*limit);
    }
    if let Some(limit) = all.get_tcp_user_timeout() {
        config.tcp_user_timeout(*limit);
    }
    if let Some(interval) = all.get_keepalives_interval() {
        config.keepalives_interval(interval);
    }
    if let Some(retries) = all.get_keepalives_retries() {
        config.keepalives_retries(retries);
    }
    config
        .keepalives(all.get_keepalives())
        .keepalives_idle(all.get_keepalives_idle())
        .ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .channel_binding(all.get_channel_binding());
    config
}

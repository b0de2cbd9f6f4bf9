//! Whether connections are encrypted and whom they trust, in libpq's words.

use gristmill_core::{Result, StoreError};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode as Driver};

/// What `sslmode` says. The driver's parser knows only the first three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SslMode {
    /// Never encrypted.
    Disable,
    /// Encrypted where the server can.
    #[default]
    Prefer,
    /// Encrypted, whoever the server is.
    Require,
    /// Encrypted, and its certificate signed by a known authority.
    VerifyCa,
    /// The same, and made for the host that the URL names.
    VerifyFull,
}

impl SslMode {
    const ALL: [(&'static str, SslMode); 5] = [
        ("disable", SslMode::Disable),
        ("prefer", SslMode::Prefer),
        ("require", SslMode::Require),
        ("verify-ca", SslMode::VerifyCa),
        ("verify-full", SslMode::VerifyFull),
    ];

    pub(crate) fn read(word: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|(name, _)| *name == word);
        known.map(|(_, mode)| mode).ok_or_else(|| {
            StoreError::invalid(format!(
                "sslmode is '{word}': it is disable, prefer, require, verify-ca or verify-full"
            ))
        })
    }

    fn word(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }

    /// What makes no sense together, or would trust more than it seems to.
    pub(crate) fn check(self, root_cert: Option<&str>) -> Result<()> {
        let word = self.word();
        let why = match (self, root_cert) {
            (SslMode::Disable | SslMode::Prefer, Some(_)) => format!(
                "sslrootcert is given, but sslmode={word} trusts any server: say \
                 sslmode=verify-full"
            ),
            (SslMode::Require | SslMode::VerifyCa, Some("system")) | (SslMode::VerifyCa, None) => {
                format!(
                    "sslmode={word} would trust every host that any public authority signed for: \
                 say sslmode=verify-full, or name your own authority's file with sslrootcert"
                )
            }
            (mode, _) if !cfg!(feature = "tls") && mode.must_encrypt() => format!(
                "sslmode={word}, and this program was built without TLS: build it with \
                 gristmill's feature `tls`"
            ),
            _ => return Ok(()),
        };
        Err(StoreError::invalid(why))
    }

    fn must_encrypt(self) -> bool {
        !matches!(self, SslMode::Disable | SslMode::Prefer)
    }

    /// Tells the driver. A socket of this machine is never encrypted, as with
    /// libpq: PostgreSQL cannot.
    pub(crate) fn tell(self, config: &mut Config) {
        let hosts = config.get_hosts();
        #[cfg(unix)]
        let local = !hosts.is_empty() && hosts.iter().all(|host| matches!(host, Host::Unix(_)));
        #[cfg(not(unix))]
        let local = false;
        config.ssl_mode(match self {
            _ if local => Driver::Disable,
            SslMode::Disable => Driver::Disable,
            SslMode::Prefer => Driver::Prefer,
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => Driver::Require,
        });
    }
}

//! Encryption: a certificate and its key in files, which are read again when they change.
//!
//! A certificate is renewed every few weeks, by a program that puts new files in place.
//! What it put there is taken only if it can be used; otherwise the one before stays, and
//! the log says why. Connections that stand keep theirs.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::watched::{LOOK, Watched};

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificates cannot be read.
    #[error("the certificate {0} cannot be read: {1}", file.display(), why)]
    Certificate {
        /// Where they should be.
        file: PathBuf,
        /// What is wrong.
        why: rustls::pki_types::pem::Error,
    },
    /// There is none in the file.
    #[error("there is no certificate in {0}: it wants PEM, the server's own first", file.display())]
    NoCertificate {
        /// Where it should be.
        file: PathBuf,
    },
    /// The key cannot be read.
    #[error("the key {0} cannot be read: {1}; it wants PEM without a password", file.display(), why)]
    Key {
        /// Where it should be.
        file: PathBuf,
        /// What is wrong.
        why: rustls::pki_types::pem::Error,
    },
    /// They do not go together, or are of a kind that is not known.
    #[error("the certificate {0} cannot be used with the key {1}: {2}", cert.display(), key.display(), why)]
    Together {
        /// The certificate.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
        /// What is wrong.
        why: rustls::Error,
    },
}

/// A certificate with its key, as it is now.
#[derive(Debug)]
pub struct Encryption {
    cert: PathBuf,
    key: PathBuf,
    used: RwLock<Arc<ServerConfig>>,
    /// How often the files were read again.
    again: AtomicU64,
}

impl Encryption {
    /// What these files hold, in PEM: the certificate with those between it and its
    /// authority, and its key.
    ///
    /// # Errors
    /// When they cannot be read or do not go together.
    pub fn read(cert: PathBuf, key: PathBuf) -> Result<Self, TlsError> {
        let used = RwLock::new(Arc::new(config(&cert, &key)?));
        Ok(Encryption { cert, key, used, again: AtomicU64::new(0) })
    }

    /// How often the files were read again: once when it is first served with, and each
    /// time one of them has changed.
    #[must_use]
    pub fn readings(&self) -> u64 {
        self.again.load(Ordering::Relaxed)
    }

    /// Agrees with a client.
    pub(crate) async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        let config = self.used.read().unwrap_or_else(PoisonError::into_inner).clone();
        TlsAcceptor::from(config).accept(stream).await
    }

    /// Takes what changed, until it is dropped.
    pub(crate) async fn follow(self: Arc<Self>) {
        let watch = || Watched::new(vec![self.cert.clone(), self.key.clone()]);
        let mut watched = watch();
        // What changed while the process started is not missed.
        self.again();
        loop {
            tokio::time::sleep(LOOK).await;
            if watched.look() {
                watched = watch();
                self.again();
            }
        }
    }

    fn again(&self) {
        match config(&self.cert, &self.key) {
            Ok(fresh) => {
                *self.used.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
                tracing::info!(
                    target: "gristmill::server", cert = %self.cert.display(),
                    "the certificate was read"
                );
            }
            Err(error) => {
                tracing::error!(
                    target: "gristmill::server", %error,
                    "the changed certificate was not taken: the one before stays in use"
                );
            }
        }
        self.again.fetch_add(1, Ordering::Relaxed);
    }
}

/// TLS 1.2 and 1.3 with this certificate, for HTTP/1.1.
fn config(cert: &Path, key: &Path) -> Result<ServerConfig, TlsError> {
    let wrong = |why| TlsError::Certificate { file: cert.to_owned(), why };
    let chain = CertificateDer::pem_file_iter(cert).map_err(wrong)?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate { file: cert.to_owned() });
    }
    let key_of = PrivateKeyDer::from_pem_file(key)
        .map_err(|why| TlsError::Key { file: key.to_owned(), why })?;
    let together = |why| TlsError::Together { cert: cert.to_owned(), key: key.to_owned(), why };
    // Given here and not as the process's default: that one is the program's.
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(together)?;
    let mut config =
        builder.with_no_client_auth().with_single_cert(chain, key_of).map_err(together)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

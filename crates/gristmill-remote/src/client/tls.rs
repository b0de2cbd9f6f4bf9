//! Encrypted connections, and whose certificates are trusted: the system's authorities,
//! those of `SSL_CERT_FILE` and those that browsers know, or those of one file alone.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(super) fn connector(ca: Option<&PathBuf>) -> Result<TlsConnector, String> {
    let roots = match ca {
        Some(file) => only(file)?,
        None => known(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("nothing can be encrypted: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn known() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in found.errors {
        tracing::debug!(target: "gristmill::remote", %error, "authorities of the system were not read");
    }
    roots.add_parsable_certificates(found.certs);
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    roots
}

fn only(file: &PathBuf) -> Result<RootCertStore, String> {
    let unread =
        |why: String| format!("the authorities in {} cannot be read: {why}", file.display());
    let mut roots = RootCertStore::empty();
    for found in CertificateDer::pem_file_iter(file).map_err(|error| unread(error.to_string()))? {
        let found = found.map_err(|error| unread(error.to_string()))?;
        roots.add(found).map_err(|error| unread(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unread("there is no certificate in PEM".to_owned()));
    }
    Ok(roots)
}

pub(super) async fn encrypted(
    tls: &TlsConnector,
    host: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, String> {
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|error| format!("no encrypted connection: {error}"))?;
    let agreed = tls.connect(name, stream).await;
    agreed.map_err(|error| {
        let said = error.to_string();
        // What `openssl req -x509` makes unless it is told otherwise.
        let hint = if said.contains("CaUsedAsEndEntity") {
            " (the service shows an authority's certificate: give it one with CA:FALSE)"
        } else {
            ""
        };
        format!("no encrypted connection: {said}{hint}")
    })
}

//! Encrypted connections: whom the server's certificate must come from, and
//! what is said when it does not.
//!
//! The words are those of libpq. `prefer` and `require` encrypt and trust any
//! certificate; with a file of authorities `require` is `verify-ca`.

use std::path::Path;
use std::sync::Arc;

use gristmill_core::{Result, StoreError};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::ssl_mode::SslMode;

/// What connections are made with.
pub(crate) type Connector = MakeRustlsConnect;

/// The connector for a mode, and the authorities that it trusts.
pub(crate) fn connector(mode: SslMode, root_cert: Option<&str>) -> Result<Connector> {
    let trust = match (mode, root_cert) {
        (SslMode::Disable | SslMode::Prefer, _) | (SslMode::Require, None) => Trust::Anyone,
        (SslMode::Require | SslMode::VerifyCa, _) => {
            Trust::Authority(Authorities::read(root_cert)?)
        }
        (SslMode::VerifyFull, _) => Trust::AuthorityAndName(Authorities::read(root_cert)?),
    };
    // Given here and not as the process's default: that one is the program's.
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier { trust, algorithms: provider.signature_verification_algorithms };
    Ok(MakeRustlsConnect::new(config(provider, verifier)?))
}

fn config(provider: Arc<CryptoProvider>, verifier: Verifier) -> Result<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| StoreError::invalid("TLS").caused_by(e))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    // Ignored by older servers; needed where TLS begins at once.
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(config)
}

/// Who may have signed the server's certificate.
#[derive(Debug)]
struct Authorities {
    roots: RootCertStore,
    /// The certificates of the file as they stand there.
    named: Vec<CertificateDer<'static>>,
}

impl Authorities {
    /// Those of a file; without one, or with `system`, the system's and those
    /// that browsers know.
    fn read(root_cert: Option<&str>) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        let Some(path) = root_cert.filter(|path| *path != "system") else {
            let known = rustls_native_certs::load_native_certs();
            for error in known.errors {
                tracing::debug!(%error, "authorities of the system were not read");
            }
            roots.add_parsable_certificates(known.certs);
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            return Ok(Authorities { roots, named: Vec::new() });
        };
        let fault = || StoreError::invalid(format!("sslrootcert '{path}' cannot be used"));
        let named = CertificateDer::pem_file_iter(Path::new(path))
            .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
            .map_err(|e| fault().caused_by(e))?;
        if named.is_empty() {
            return Err(StoreError::invalid(format!(
                "sslrootcert '{path}': there is no certificate in it"
            )));
        }
        for certificate in &named {
            roots.add(certificate.clone()).map_err(|e| fault().caused_by(e))?;
        }
        Ok(Authorities { roots, named })
    }

    fn check(
        &self,
        certificate: &CertificateDer<'_>,
        parsed: &ParsedCertificate<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> std::result::Result<(), Error> {
        let roots = &self.roots;
        let signed =
            verify_server_cert_signed_by_trust_anchor(parsed, roots, between, now, algorithms.all);
        match signed {
            // A server that is its own authority, as `openssl req -x509` makes
            // it: the one certificate is in the file itself. Its time was
            // looked at before this error.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.named.contains(certificate) =>
            {
                Ok(())
            }
            other => other,
        }
    }
}

#[derive(Debug)]
enum Trust {
    Anyone,
    Authority(Authorities),
    AuthorityAndName(Authorities),
}

#[derive(Debug)]
struct Verifier {
    trust: Trust,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    /// Then a signature proves nothing either, and a certificate that cannot
    /// be read (of X.509's first version, say) does no harm.
    fn trusts_anyone(&self) -> bool {
        matches!(self.trust, Trust::Anyone)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, Error> {
        let (authorities, named) = match &self.trust {
            Trust::Anyone => return Ok(ServerCertVerified::assertion()),
            Trust::Authority(authorities) => (authorities, false),
            Trust::AuthorityAndName(authorities) => (authorities, true),
        };
        let parsed = ParsedCertificate::try_from(certificate)?;
        authorities.check(certificate, &parsed, between, now, &self.algorithms)?;
        if named {
            verify_server_name(&parsed, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        if self.trusts_anyone() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        if self.trusts_anyone() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// What to do about a handshake that failed, where that is known.
pub(crate) fn advice(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    // The handshake's own error is wrapped as one of the stream.
    let inner = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    let error = match inner {
        Some(inner) => inner.downcast_ref::<Error>()?,
        None => cause.downcast_ref::<Error>()?,
    };
    let Error::InvalidCertificate(why) = error else {
        return None;
    };
    Some(match why {
        CertificateError::UnknownIssuer => {
            "nobody known here signed the server's certificate: name the file of the \
             authority that did, with sslrootcert=/path/to/ca.crt"
                .to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!(
                "the server's certificate is for another host ({why}): write its name in the \
                 URL, or trust every host of that authority with sslmode=verify-ca"
            )
        }
        _ => format!("the server's certificate is not accepted: {why}"),
    })
}

//! Requests to one address: connections that are kept for a moment between tasks, limits
//! on what is read, and no redirects.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gristmill_contract::duration;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HeaderMap;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::address::Address;
use super::verdict::Head;

/// How long a connection may take to be made, with all that encrypts it.
const CONNECT: Duration = Duration::from_secs(10);
/// A connection that was not used for so long is closed by us: receivers close theirs
/// after a few seconds, and a request that meets that is lost.
const UNUSED: Duration = Duration::from_secs(1);
/// Most bytes that are read of an answer.
pub(super) const ANSWER_BYTES: usize = 1 << 20;

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
    /// It was longer than what was read of it.
    pub(super) is_cut: bool,
}

impl Answer {
    /// What the answer's first line says.
    #[cfg(feature = "otel")]
    pub(crate) const fn status(&self) -> u16 {
        self.head.status
    }
}

/// Sends requests to an address.
pub(crate) struct Client {
    address: Address,
    tls: Option<TlsConnector>,
    idle: Mutex<Vec<(Line, Instant)>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A connection; dropped, it is closed, whatever is under way on it.
struct Line {
    sender: SendRequest<Full<Bytes>>,
    driving: tokio::task::JoinHandle<()>,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.driving.abort();
    }
}

impl Client {
    /// # Errors
    /// In words, when nothing can be encrypted here.
    pub(crate) fn new(address: Address) -> Result<Self, String> {
        let tls = address.encrypted.then(connector).transpose()?;
        Ok(Client { address, tls, idle: Mutex::default() })
    }

    /// Posts this body. Dropped while it waits, the connection is closed.
    ///
    /// # Errors
    /// In words, when there is no answer.
    pub(crate) async fn post(&self, headers: HeaderMap, body: Bytes) -> Result<Answer, String> {
        let mut request = Request::post(&*self.address.target)
            .body(Full::new(body))
            .map_err(|error| error.to_string())?;
        *request.headers_mut() = headers;
        let (line, response) = loop {
            let (mut line, is_kept) = match self.kept() {
                Some(line) => (line, true),
                None => (self.connect().await?, false),
            };
            // One that was kept may have been closed since.
            let is_ready = line.sender.ready().await.is_ok();
            if !is_ready && is_kept {
                continue;
            }
            match line.sender.try_send_request(request).await {
                Ok(response) => break (line, response),
                Err(mut error) => match error.take_message() {
                    // Nothing of it was sent.
                    Some(unsent) if is_kept => request = unsent,
                    _ => return Err(format!("no answer: {}", told(&error.into_error()))),
                },
            }
        };
        let answer = read(response).await?;
        if !answer.is_cut {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.push((line, Instant::now()));
        }
        Ok(answer)
    }

    /// The connection that was used last, if it may still be there.
    fn kept(&self) -> Option<Line> {
        let now = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(line, since)| {
            now.saturating_duration_since(*since) < UNUSED && !line.sender.is_closed()
        });
        idle.pop().map(|(line, _)| line)
    }

    async fn connect(&self) -> Result<Line, String> {
        let made = tokio::time::timeout(CONNECT, async {
            let (host, port) = (&*self.address.host, self.address.port);
            let stream = TcpStream::connect((host, port)).await;
            let stream = stream.map_err(|error| format!("no connection: {error}"))?;
            // Requests are written at once.
            let _ = stream.set_nodelay(true);
            let Some(tls) = &self.tls else { return line(stream).await };
            let name = ServerName::try_from(host.to_owned());
            let name = name.map_err(|error| format!("no connection: {error}"))?;
            let stream = tls.connect(name, stream).await;
            line(stream.map_err(|error| format!("no encrypted connection: {error}"))?).await
        });
        made.await
            .unwrap_or_else(|_| Err(format!("no connection within {}", duration::show(CONNECT))))
    }
}

async fn line(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<Line, String> {
    let made = handshake(TokioIo::new(stream)).await;
    let (sender, connection) = made.map_err(|error| format!("no connection: {}", told(&error)))?;
    let driving = tokio::spawn(async move {
        // Whoever waits for an answer is told.
        let _ = connection.await;
    });
    Ok(Line { sender, driving })
}

async fn read(response: Response<Incoming>) -> Result<Answer, String> {
    let header = |name: &str| {
        let value = response.headers().get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let head = Head {
        status: response.status().as_u16(),
        retry_after: header("retry-after"),
        date: header("date"),
        location: header("location"),
    };
    let (mut body, mut is_cut) = (Vec::new(), false);
    let mut incoming = response.into_body();
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| {
            format!("HTTP {}, and its answer broke off: {}", head.status, told(&error))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        let room = ANSWER_BYTES - body.len();
        body.extend_from_slice(data.get(..data.len().min(room)).unwrap_or_default());
        if data.len() > room {
            is_cut = true;
            break;
        }
    }
    Ok(Answer { head, body, is_cut })
}

/// An error with what it was caused by.
fn told(error: &hyper::Error) -> String {
    let mut told = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(why) = cause {
        told += &format!(": {why}");
        cause = why.source();
    }
    told
}

/// The authorities of the system, those of `SSL_CERT_FILE`, and those that browsers know.
fn connector() -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    let known = rustls_native_certs::load_native_certs();
    for error in known.errors {
        tracing::debug!(%error, "authorities of the system were not read");
    }
    roots.add_parsable_certificates(known.certs);
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("nothing can be encrypted: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

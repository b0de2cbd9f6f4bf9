//! Connections to one service: kept for a while between requests, and nothing that comes
//! over them is followed elsewhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HeaderMap;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::Address;

/// A connection that was not used for so long is closed by us: a service closes its own
/// after a minute, and a request that meets that is lost.
const UNUSED: Duration = Duration::from_secs(20);
/// Most bytes that are read of an answer: a claim has at most 16 MiB of payloads, in
/// base64, and one more beside.
const ANSWER_BYTES: usize = 96 << 20;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Lost {
    /// Nothing of the request was sent.
    Unsent(String),
    /// It was sent, or some of it.
    Sent(String),
}

/// What was answered.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// The connections.
pub(super) struct Lines {
    address: Address,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsConnector>,
    connect: Duration,
    idle: Mutex<Vec<(Line, Instant)>>,
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").field("address", &self.address).finish_non_exhaustive()
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

impl Lines {
    /// # Errors
    /// In words, when nothing can be encrypted here.
    pub(super) fn new(address: Address, connect: Duration) -> Result<Self, String> {
        #[cfg(feature = "tls")]
        let tls = address.encrypted().then(|| super::tls::connector(address.ca())).transpose()?;
        #[cfg(not(feature = "tls"))]
        if address.encrypted() {
            return Err("this program was built without encryption: build gristmill with the \
                        feature 'tls'"
                .to_owned());
        }
        Ok(Lines {
            address,
            #[cfg(feature = "tls")]
            tls,
            connect,
            idle: Mutex::default(),
        })
    }

    pub(super) const fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a request, and says when it begins to. Dropped while it waits, the connection
    /// is closed.
    pub(super) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        sent: &AtomicBool,
    ) -> Result<Answered, Lost> {
        let mut request = request;
        let (line, response) = loop {
            let (mut line, is_kept) = match self.kept() {
                Some(line) => (line, true),
                None => (self.connect().await.map_err(Lost::Unsent)?, false),
            };
            // One that was kept may have been closed since.
            if line.sender.ready().await.is_err() && is_kept {
                continue;
            }
            sent.store(true, Ordering::Relaxed);
            match line.sender.try_send_request(request).await {
                Ok(response) => break (line, response),
                Err(mut error) => match error.take_message() {
                    Some(unsent) if is_kept => {
                        sent.store(false, Ordering::Relaxed);
                        request = unsent;
                    }
                    Some(_) => return Err(Lost::Unsent(told(&error.into_error()))),
                    None => return Err(Lost::Sent(told(&error.into_error()))),
                },
            }
        };
        let answered = read(response).await.map_err(Lost::Sent)?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push((line, Instant::now()));
        Ok(answered)
    }

    /// Closes those that nobody uses.
    pub(super) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
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
        let made = tokio::time::timeout(self.connect, async {
            let stream = TcpStream::connect(self.address.host()).await;
            let stream = stream.map_err(|error| format!("no connection: {error}"))?;
            // Requests are written at once.
            let _ = stream.set_nodelay(true);
            #[cfg(feature = "tls")]
            if let Some(tls) = &self.tls {
                return line(super::tls::encrypted(tls, self.address.host().0, stream).await?)
                    .await;
            }
            line(stream).await
        });
        made.await.unwrap_or_else(|_| Err(format!("no connection within {:?}", self.connect)))
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

async fn read(response: Response<Incoming>) -> Result<Answered, String> {
    let (head, mut incoming) = response.into_parts();
    let mut body = BytesMut::new();
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| format!("the answer broke off: {}", told(&error)))?;
        let Ok(data) = frame.into_data() else { continue };
        if body.len() + data.len() > ANSWER_BYTES {
            return Err(format!("the answer has over {ANSWER_BYTES} bytes"));
        }
        body.extend_from_slice(&data);
    }
    Ok(Answered { status: head.status.as_u16(), headers: head.headers, body: body.freeze() })
}

/// An error with what it was caused by.
fn told(error: &hyper::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.fold(error.to_string(), |told, cause| format!("{told}: {cause}"))
}

//! Listening, accepting, and stopping without dropping what is under way.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use gristmill::Mill;
use gristmill::port::WorkerId;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower_service::Service as _;

use crate::access::{Encrypted, Peer};
use crate::connection::{Connection, Place, Served, Timed};
use crate::guard::Serves;
use crate::limits::{HANDSHAKE, HEAD_BYTES, STOP};
use crate::service::Service;
use crate::tls::Encryption;
use crate::{ListenError, guard, operation, retention, router};

/// What the service does besides answering.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Only answers those who watch the process: `/livez`, `/readyz` and `/metrics`.
    pub watch_only: bool,
    /// Does what time brings (expired leases, what falls due), once a second: for a
    /// process without workers, which do it otherwise.
    pub sweeps: bool,
    /// Lets nobody in while the store has no token, instead of everybody: because this
    /// port, or another one of the same store, can be reached from other machines. A port
    /// that can be reached itself does so anyway.
    pub strict: bool,
    /// The dashboard shows everything and changes nothing. The routes below `/v1` are not
    /// touched.
    pub read_only: bool,
    /// How long the audit log is kept: 90 days unless said.
    pub kept_audit: Option<Duration>,
    /// How long operations that ended are kept: 7 days unless said.
    pub kept_operations: Option<Duration>,
}

/// A port that was taken. Nobody is answered at it before a [`Server`] runs.
#[derive(Debug)]
pub struct Port {
    listener: TcpListener,
    address: SocketAddr,
}

/// How connections of a server are made.
#[derive(Clone)]
struct Serving {
    service: Arc<Service>,
    router: Router,
    encryption: Option<Arc<Encryption>>,
}

/// A service over a store, which serves once it is run.
#[derive(Debug)]
pub struct Server {
    port: Port,
    service: Arc<Service>,
    stopping: watch::Sender<bool>,
    options: Options,
    encryption: Option<Arc<Encryption>>,
}

/// How long to wait after the operating system could not accept a connection: it is
/// out of files or memory, and asking at once again would only burn the processor.
const OUT_OF_FILES: Duration = Duration::from_millis(100);

impl Port {
    /// Takes a port: before a store is opened, so that a start that cannot succeed
    /// changes nothing.
    ///
    /// # Errors
    /// When the address is in use or not of this machine.
    pub async fn take(address: SocketAddr) -> Result<Self, ListenError> {
        let listener = TcpListener::bind(address).await.map_err(|why| match why.kind() {
            std::io::ErrorKind::AddrInUse => ListenError::Busy(address),
            _ => ListenError::Denied { address, why },
        })?;
        let address = listener.local_addr().unwrap_or(address);
        Ok(Port { listener, address })
    }

    /// Where it is: the port that was taken, where any would do.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Server {
    /// A service at this port.
    #[must_use]
    pub fn new(port: Port, mill: &Mill, options: Options) -> Self {
        let (stopping, stops) = watch::channel(false);
        let ours = port.address.ip().is_loopback();
        let serves = if ours { Serves::Ourselves } else { Serves::Others };
        let strict = options.strict || !ours;
        let service = Arc::new(Service::new(mill.clone(), serves, strict, &options, stops));
        Server { port, service, stopping, options, encryption: None }
    }

    /// Serves nothing that is not encrypted.
    #[must_use]
    pub fn encrypted(self, encryption: Arc<Encryption>) -> Self {
        Server { encryption: Some(encryption), ..self }
    }

    /// Serves until `stop`. What is under way then may finish: requests that wait for
    /// work are answered with nothing, streams end after the tasks they have put.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Server { port: Port { listener, .. }, service, stopping, options, encryption } = self;
        let router = router::router(service.clone(), options.watch_only);
        let following = encryption.clone().map(|encryption| tokio::spawn(encryption.follow()));
        let how = Serving { service: service.clone(), router, encryption };
        let mut serving = JoinSet::new();
        let sweeping = options.sweeps.then(|| tokio::spawn(sweep(service.clone())));
        // A process without chance has more to worry about than operations, and another
        // service carries them out.
        let runner = WorkerId::random().ok().filter(|_| !options.watch_only);
        let kept = options.kept_operations.unwrap_or(operation::KEPT);
        let operating = runner
            .clone()
            .map(|who| tokio::spawn(operation::run(service.operations.clone(), who, kept)));
        let forgetting =
            runner.clone().map(|who| tokio::spawn(retention::run(how.service.clone(), who)));
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => match service.connections.enter() {
                        Some(place) => {
                            serving.spawn(welcome(stream, Peer(peer.ip()), place, how.clone()));
                        }
                        None => drop(stream),
                    },
                    Err(error) => {
                        tracing::warn!(target: "gristmill::server", %error, "no connection could be accepted");
                        tokio::time::sleep(OUT_OF_FILES).await;
                    }
                },
                Some(_) = serving.join_next() => {}
            }
        }
        drop(listener);
        stopping.send_replace(true);
        for task in sweeping.into_iter().chain(following).chain(forgetting) {
            task.abort();
        }
        if let (Some(operating), Some(who)) = (operating, runner) {
            operating.abort();
            let _ = operating.await;
            // So that another service need not wait until the role runs out.
            let _ = tokio::time::timeout(STOP, operation::give_up(&service.operations, &who)).await;
        }
        let all = async { while serving.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP, all).await.is_err() {
            let left = service.connections.count();
            tracing::warn!(target: "gristmill::server", left, "connections were cut off");
        }
        serving.shutdown().await;
    }
}

/// Does what time brings until it is ended.
async fn sweep(service: Arc<Service>) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if let Err(error) = service.store.sweep().await {
            tracing::debug!(target: "gristmill::server", error = %error.whole(), "the store was not swept");
        }
    }
}

/// Agrees on encryption with who connects, where that is wanted, and serves them.
async fn welcome(stream: TcpStream, peer: Peer, place: Place, how: Serving) {
    // Answers are small and waited for.
    let _ = stream.set_nodelay(true);
    let Some(encryption) = how.encryption.clone() else {
        return serve(stream, peer, place, how).await;
    };
    let agreed = tokio::select! {
        agreed = tokio::time::timeout(HANDSHAKE, encryption.accept(stream)) => agreed,
        () = place.connection.close.notified() => return,
        () = how.service.stops() => return,
    };
    match agreed {
        Ok(Ok(stream)) => serve(stream, peer, place, how).await,
        Ok(Err(error)) => {
            tracing::debug!(target: "gristmill::server", %error, "no encryption was agreed on");
        }
        Err(_) => {
            tracing::debug!(target: "gristmill::server", "a handshake took over {HANDSHAKE:?}")
        }
    }
}

/// Serves one connection to its end.
async fn serve<S>(stream: S, peer: Peer, place: Place, how: Serving)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Serving { service, router, encryption } = how;
    let secure = encryption.is_some();
    let connection = place.connection.clone();
    let io = TokioIo::new(Timed::new(stream, connection.clone()));
    let answers = {
        let (connection, service) = (connection.clone(), service.clone());
        service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(Encrypted(secure));
            answer(request, secure, connection.clone(), service.clone(), router.clone())
        })
    };
    let mut serving = std::pin::pin!(
        http1::Builder::new()
            .max_buf_size(HEAD_BYTES.max(64 << 10))
            .max_headers(64)
            .serve_connection(io, answers)
    );
    let mut told = false;
    loop {
        tokio::select! {
            ended = &mut serving => {
                if let Err(error) = ended {
                    tracing::debug!(target: "gristmill::server", %error, "a connection broke off");
                }
                return;
            }
            () = connection.close.notified() => return,
            () = service.stops(), if !told => {
                told = true;
                serving.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Answers one request.
async fn answer(
    request: Request<Incoming>,
    secure: bool,
    connection: Arc<Connection>,
    service: Arc<Service>,
    mut router: Router,
) -> Result<Response, Infallible> {
    let serving = connection.begin();
    let named_by_others = secure && guard::is_named_by_others(request.uri(), request.headers());
    let head = (request.method(), request.uri(), request.headers());
    let mut response = match guard::check(service.serves, secure, head) {
        Ok(()) => match router.call(request.map(Body::new)).await {
            Ok(response) => response,
        },
        Err(problem) => problem.into_response(),
    };
    service.count(response.status().as_u16());
    guard::mark(&mut response);
    if named_by_others {
        guard::mark_secure(&mut response);
    }
    Ok(response.map(|body| Body::new(Served::new(body, serving))))
}

//! The metrics over HTTP, for a collector that asks.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use gristmill::Mill;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// How long somebody may take to ask.
const ASKS_WITHIN: Duration = Duration::from_secs(5);
/// Most connections side by side: a collector needs one.
const AT_ONCE: usize = 32;

/// Answers until it is dropped.
#[derive(Debug)]
pub struct Scraped {
    /// Where it listens.
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Scraped {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves the mill's metrics at `/metrics`.
///
/// # Errors
/// When the address cannot be listened at.
pub async fn listen(mill: &Mill, address: SocketAddr) -> std::io::Result<Scraped> {
    let told = |e: std::io::Error| std::io::Error::new(e.kind(), format!("{address}: {e}"));
    let listener = TcpListener::bind(address).await.map_err(told)?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "metrics are at /metrics");
    let mill = mill.clone();
    let task = tokio::spawn(async move {
        let room = std::sync::Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
        loop {
            let Ok(place) = room.clone().acquire_owned().await else { return };
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of descriptors: others give some back meanwhile.
                    tracing::warn!(%error, "nobody can be let in");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    continue;
                }
            };
            let mill = mill.clone();
            tokio::spawn(async move {
                let answers = service_fn(move |request| {
                    let answer = answer(&mill, &request);
                    async { Ok::<_, Infallible>(answer) }
                });
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(ASKS_WITHIN)
                    .serve_connection(TokioIo::new(stream), answers);
                // Who hangs up in the middle wants no answer.
                let _ = connection.await;
                drop(place);
            });
        }
    });
    Ok(Scraped { address, task })
}

fn answer(mill: &Mill, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, kind, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => {
            (StatusCode::OK, "text/plain; version=0.0.4", mill.metrics().text())
        }
        (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "GET it\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, "text/plain", "metrics are at /metrics\n".to_owned()),
    };
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    answer
}

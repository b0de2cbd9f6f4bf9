//! Serves the status page, and the same as JSON at `/status.json`.

use std::convert::Infallible;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gristmill::Mill;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::board;
use crate::deck::Deck;
use crate::error::Result;
use crate::overview::Overview;

/// How long somebody may take to ask.
const ASKS_WITHIN: Duration = Duration::from_secs(5);
/// Most connections side by side.
const AT_ONCE: usize = 32;

/// Answers until it is dropped.
#[derive(Debug)]
pub struct StatusPage {
    /// Where it listens.
    pub address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Drop for StatusPage {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl StatusPage {
    /// Serves the page.
    ///
    /// # Errors
    /// When the address cannot be listened at.
    pub async fn listen(address: SocketAddr, deck: Arc<Deck>, mill: Mill) -> Result<Self> {
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| format!("{address}: {error}"))?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(serve(listener, deck, mill));
        Ok(StatusPage { address, serving })
    }
}

async fn serve(listener: TcpListener, deck: Arc<Deck>, mill: Mill) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors: others give some back meanwhile.
            tokio::time::sleep(Duration::from_secs(1)).await;
            continue;
        };
        let (deck, mill) = (deck.clone(), mill.clone());
        tokio::spawn(async move {
            let answers = service_fn(move |request| {
                let (deck, mill) = (deck.clone(), mill.clone());
                async move { Ok::<_, Infallible>(answer(&deck, &mill, &request).await) }
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
}

async fn answer(
    deck: &Arc<Deck>,
    mill: &Mill,
    request: &Request<Incoming>,
) -> Response<Full<Bytes>> {
    let looked =
        async { deck.transact(|db, now| Overview::look(db, now)).await?.with_queues(mill).await };
    let (status, kind, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/") => match looked.await {
            Ok(overview) => (StatusCode::OK, "text/html; charset=utf-8", board::html(&overview)),
            Err(error) => wrong(&*error),
        },
        (&Method::GET, "/status.json") => match looked.await.and_then(|o| json(&o)) {
            Ok(json) => (StatusCode::OK, "application/json", json),
            Err(error) => wrong(&*error),
        },
        _ => (StatusCode::NOT_FOUND, "text/plain", "the status is at /\n".to_owned()),
    };
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

fn wrong(error: &dyn Display) -> (StatusCode, &'static str, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, "text/plain", format!("{error}\n"))
}

fn json(overview: &Overview) -> Result<String> {
    Ok(serde_json::to_string_pretty(overview)?)
}

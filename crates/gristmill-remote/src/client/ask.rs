//! Asking: one verb, within its deadline, again where that is harmless.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use hyper::{Method, Request};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use gristmill_core::{Result, StoreError};

use super::Options;
use super::answer::{self, NoValue, lost};
use super::driver::{Driver, Running};
use super::line::{Answered, Lines, Lost};
use crate::Address;
use crate::wire::{About, Fault, MARK_HEADER, PATH, Repeat, VERSION, VERSION_HEADER, Wire};

/// How often something is asked at most, where it may be.
const TRIES: u32 = 3;

/// Who asks a service.
#[derive(Debug)]
pub(super) struct Asker {
    driver: Driver,
    shared: Arc<Shared>,
}

/// What a request needs on the thread that drives it.
#[derive(Debug)]
struct Shared {
    lines: Lines,
    headers: HeaderMap,
    room: Semaphore,
    options: Options,
}

/// What kind of call it is, as far as its connection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// One of those that take turns.
    Ordinary,
    /// A heartbeat: never behind the others.
    Heartbeat,
    /// It waits at the service for this long, and ends when nobody waits for it here.
    Waits(Duration),
}

/// One request, ready to be sent again.
#[derive(Debug, Clone)]
struct Call {
    method: Method,
    path: String,
    body: Bytes,
    repeat: Repeat,
    manner: Manner,
}

/// What came back: the value, and up to where the service's wake-ups are.
pub(super) type Told = (Value, Option<String>);

impl Asker {
    pub(super) fn new(address: Address, options: Options) -> Result<Self> {
        let headers = headers(&address)?;
        let lines = Lines::new(address, options.connect).map_err(StoreError::invalid)?;
        let room = Semaphore::new(options.at_once.max(1));
        let shared = Arc::new(Shared { lines, headers, room, options });
        Ok(Asker { driver: Driver::start()?, shared })
    }

    /// What the service says of itself.
    pub(super) async fn about(&self) -> Result<(About, Option<String>)> {
        let call = Call {
            method: Method::GET,
            path: PATH.to_owned(),
            body: Bytes::new(),
            repeat: Repeat::Looks,
            manner: Manner::Ordinary,
        };
        let (value, mark) = self.run(call).await?;
        let about = About::read(value).map_err(|fault| unread(Repeat::Looks, &fault))?;
        Ok((about, mark))
    }

    /// Asks a verb.
    pub(super) async fn ask(
        &self,
        verb: &str,
        asked: &Value,
        repeat: Repeat,
        manner: Manner,
    ) -> Result<Told> {
        let call = Call {
            method: Method::POST,
            path: format!("{PATH}/{verb}"),
            body: asked.to_string().into(),
            repeat,
            manner,
        };
        self.run(call).await
    }

    /// Closes connections that nobody uses.
    pub(super) fn close(&self) {
        self.shared.lines.close();
    }

    async fn run(&self, call: Call) -> Result<Told> {
        let (repeat, manner) = (call.repeat, call.manner);
        let shared = self.shared.clone();
        // A request that nobody waits for any more goes on to its end, unless all it does
        // is to look or to hold a place at the service.
        let ends = matches!(manner, Manner::Waits(_)) || repeat == Repeat::Looks;
        let running = self.driver.spawn(async move { shared.run(call).await });
        let told = Running { running, ends }.ended().await;
        told.unwrap_or_else(|error| {
            Err(lost(repeat, "the thread of the connections has ended").caused_by(error))
        })
    }
}

/// What every request says.
fn headers(address: &Address) -> Result<HeaderMap> {
    let wrong = |_| StoreError::invalid("the address or the token cannot be said in HTTP");
    let mut headers = HeaderMap::new();
    headers.insert(HOST, HeaderValue::try_from(address.authority()).map_err(wrong)?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("gristmill/", env!("CARGO_PKG_VERSION"))),
    );
    headers.insert(HeaderName::from_static(VERSION_HEADER), HeaderValue::from(VERSION));
    if let Some(token) = address.token() {
        let mut shown = HeaderValue::try_from(format!("Bearer {token}")).map_err(wrong)?;
        // Neither printed nor kept by whoever compresses headers.
        shown.set_sensitive(true);
        headers.insert(AUTHORIZATION, shown);
    }
    Ok(headers)
}

impl Shared {
    async fn run(&self, call: Call) -> Result<Told> {
        let options = &self.options;
        let allowed = match call.manner {
            Manner::Ordinary => options.deadline,
            Manner::Heartbeat => options.heartbeat,
            Manner::Waits(wait) => options.deadline.saturating_add(wait),
        };
        let until = Instant::now() + allowed;
        let _room = match call.manner {
            Manner::Ordinary => match tokio::time::timeout_at(until, self.room.acquire()).await {
                Ok(room) => room.ok(),
                Err(_) => {
                    let why = format!("{} requests are under way already", options.at_once);
                    return Err(StoreError::unavailable(why));
                }
            },
            _ => None,
        };
        let mut last = None;
        for _ in 0..TRIES {
            match self.once(&call, until, allowed).await {
                Ok(told) => return Ok(told),
                Err((error, None)) => return Err(error),
                Err((error, Some(pause))) => {
                    last = Some(error);
                    if Instant::now() + pause >= until {
                        break;
                    }
                    tokio::time::sleep(pause).await;
                }
            }
        }
        Err(last.unwrap_or_else(|| lost(call.repeat, "no answer")))
    }

    /// Asks once; an error says whether, and after what, to ask again.
    async fn once(
        &self,
        call: &Call,
        until: Instant,
        allowed: Duration,
    ) -> Result<Told, (StoreError, Option<Duration>)> {
        let sent = AtomicBool::new(false);
        let answered = match tokio::time::timeout_at(until, self.send(call, &sent)).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(Lost::Unsent(why))) => return Err((StoreError::unavailable(why), None)),
            Ok(Err(Lost::Sent(why))) => {
                // The service was killed, or closed a connection that it took for unused.
                let again = (call.repeat != Repeat::Once).then_some(Duration::ZERO);
                return Err((lost(call.repeat, why), again));
            }
            Err(_) => {
                let why = format!("no answer within {allowed:?}");
                let error = if sent.load(Ordering::Relaxed) {
                    lost(call.repeat, why)
                } else {
                    StoreError::unavailable(why)
                };
                return Err((error, None));
            }
        };
        let mark = answered.headers.get(MARK_HEADER).and_then(|mark| mark.to_str().ok());
        let mark = mark.map(str::to_owned);
        match answer::value(&answered, call.repeat) {
            Ok(value) => Ok((value, mark)),
            Err(NoValue { error, again }) => Err((error, again)),
        }
    }

    async fn send(&self, call: &Call, sent: &AtomicBool) -> Result<Answered, Lost> {
        let address = self.lines.address();
        let mut request = Request::new(Full::new(call.body.clone()));
        *request.method_mut() = call.method.clone();
        let target = format!("{}{}", address.prefix(), call.path);
        *request.uri_mut() = target.parse().map_err(|error| Lost::Unsent(format!("{error}")))?;
        *request.headers_mut() = self.headers.clone();
        self.lines.send(request, sent).await
    }
}

/// What came back is not what was asked for.
pub(super) fn unread(repeat: Repeat, fault: &Fault) -> StoreError {
    lost(repeat, format!("the answer cannot be read: {fault}"))
}

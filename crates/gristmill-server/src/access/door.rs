//! Where a caller shows who it is.
//!
//! A service that only its own machine can reach, and whose store has no token, asks
//! nobody. As soon as there is one, everybody is asked, also on this machine: an address
//! tells nothing of who is behind it (another user, a tunnel, a proxy).

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};
use gristmill::Store;
use gristmill::port::{Clock, SystemClock};
use subtle::ConditionallySelectable;

use super::caller::Caller;
use super::record::Known;
use super::secret::{Digest, Secret};
use super::sessions::Sessions;
use super::throttle::Throttle;
use super::tokens::Tokens;
use crate::problem::{Answer, Problem, TOO_MANY_FAILURES, UNAUTHORIZED, UNAVAILABLE};

/// How long a look at the tokens is good for: a revoked one is refused within a second.
const FRESH: Duration = Duration::from_millis(400);
/// How long the store may take for a look.
const LOOKS: Duration = Duration::from_secs(2);
/// How long the last look counts while the store does not answer. Past it nobody is let
/// in: a token may have been revoked.
const STALE: Duration = Duration::from_secs(10);

/// Whom a request comes from, as far as the connection tells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Whether the connection that a request came by is encrypted here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encrypted(pub(crate) bool);

/// Most such cookies of one request that are looked at.
const COOKIES: usize = 8;
/// The name of the cookie of who has logged in at the pages.
pub(crate) const SESSION: &str = "gristmill_session";

/// The door of a service.
#[derive(Debug)]
pub(crate) struct Door {
    tokens: Tokens,
    /// Without any token nobody is let in, instead of everybody.
    strict: bool,
    seen: Mutex<Option<Seen>>,
    /// Held while the tokens are looked at, so that a hundred who wait are one question.
    looking: tokio::sync::Mutex<()>,
    throttle: Throttle,
    sessions: Sessions,
    refused: AtomicU64,
}

/// The tokens, as they were.
#[derive(Debug, Clone)]
struct Seen {
    at: Instant,
    tokens: Arc<Vec<Arc<Known>>>,
    any: bool,
}

impl Door {
    pub(crate) fn new(store: Arc<dyn Store>, strict: bool) -> Self {
        Door {
            tokens: Tokens::in_store(store),
            strict,
            seen: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
            throttle: Throttle::default(),
            sessions: Sessions::default(),
            refused: AtomicU64::new(0),
        }
    }

    /// Who calls.
    pub(crate) async fn caller(&self, headers: &HeaderMap, peer: Option<Peer>) -> Answer<Caller> {
        let seen = self.look().await?;
        if !seen.any && !self.strict {
            return Ok(Caller::anyone());
        }
        let Some(shown) = bearer(headers) else {
            // Nothing was guessed, so nothing is counted.
            let why = if seen.any {
                "this service asks for a token"
            } else {
                "this service can be reached by others and has no token yet"
            };
            return Err(Problem::new(&UNAUTHORIZED, why)
                .challenged("Bearer realm=\"gristmill\"".to_owned()));
        };
        let found = shown.as_ref().and_then(|shown| among(&seen.tokens, &shown.digest()));
        match found {
            Some(known) => Ok(Caller::with(known)),
            None => Err(self.refuse(peer)),
        }
    }

    /// Who looks at a page: whoever shows a token, or has logged in with one that is good
    /// at this moment. A session that is over is nobody's guess and is not counted.
    pub(crate) async fn visitor(&self, headers: &HeaderMap, peer: Option<Peer>) -> Answer<Caller> {
        let mut said = cookies(headers).peekable();
        if !headers.contains_key(header::AUTHORIZATION) && said.peek().is_some() {
            let seen = self.look().await?;
            for session in said {
                if let Some(known) = self.session(&seen, &session) {
                    return Ok(Caller::in_session(known, session));
                }
            }
        }
        self.caller(headers, peer).await
    }

    /// Who shows this token in a form.
    pub(crate) async fn shown(&self, text: &str, peer: Option<Peer>) -> Answer<Caller> {
        let seen = self.look().await?;
        if !seen.any && !self.strict {
            return Ok(Caller::anyone());
        }
        let shown = Secret::shown_as(text);
        match shown.and_then(|shown| among(&seen.tokens, &shown.digest())) {
            Some(known) => Ok(Caller::with(known)),
            None => Err(self.refuse(peer)),
        }
    }

    /// Begins a session of who has shown a token; where nobody is asked there is none.
    pub(crate) fn begin(&self, caller: &Caller) -> Answer<Option<Secret>> {
        let begun = caller.known.clone().map(|known| self.sessions.begin(known, Instant::now()));
        Ok(begun.transpose()?)
    }

    /// Ends the sessions that a browser tells of.
    pub(crate) fn end(&self, headers: &HeaderMap) {
        for session in cookies(headers) {
            self.sessions.end(&session);
        }
    }

    /// The token of a session, as it is now.
    fn session(&self, seen: &Seen, session: &Digest) -> Option<Arc<Known>> {
        let token = self.sessions.token(session, Instant::now())?;
        among(&seen.tokens, &token.digest)
    }

    /// Whether who came in earlier would still be let in.
    pub(crate) async fn still_takes(&self, caller: &Caller) -> Answer<()> {
        let seen = self.look().await?;
        if let Some(session) = &caller.session {
            return self.session(&seen, session).map(|_| ()).ok_or_else(unknown);
        }
        match &caller.known {
            None if !seen.any && !self.strict => Ok(()),
            Some(known) if among(&seen.tokens, &known.digest).is_some() => Ok(()),
            _ => Err(unknown()),
        }
    }

    /// How many wrong tokens were shown.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn refuse(&self, peer: Option<Peer>) -> Box<Problem> {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let address = peer.map_or(IpAddr::from([0, 0, 0, 0]), |Peer(address)| address);
        let verdict = self.throttle.wrong(address, Instant::now());
        if verdict.tell {
            tracing::warn!(
                target: "gristmill::server", %address,
                "a token was refused; further ones from there are told of once a minute"
            );
        }
        match verdict.wait {
            None => unknown(),
            Some(wait) => {
                let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).saturating_add(1);
                let why = "too many wrong tokens came from this address";
                Problem::new(&TOO_MANY_FAILURES, why).after(seconds)
            }
        }
    }

    /// The tokens, as they were lately.
    async fn look(&self) -> Answer<Seen> {
        let last = || self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let fresh = || last().filter(|seen| seen.at.elapsed() < FRESH);
        if let Some(seen) = fresh() {
            return Ok(seen);
        }
        let _turn = self.looking.lock().await;
        if let Some(seen) = fresh() {
            return Ok(seen);
        }
        let at = Instant::now();
        let why = match tokio::time::timeout(LOOKS, self.tokens.known()).await {
            Ok(Ok((tokens, any))) => {
                let seen = Seen { at, tokens: Arc::new(tokens), any };
                *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen.clone());
                return Ok(seen);
            }
            Ok(Err(error)) => error.into(),
            Err(_) => Problem::new(&UNAVAILABLE, format!("the store took over {LOOKS:?}")),
        };
        last().filter(|seen| seen.at.elapsed() < STALE).ok_or(why)
    }
}

fn unknown() -> Box<Problem> {
    let why = "the token is not known here: it is wrong, expired, or was revoked";
    Problem::new(&UNAUTHORIZED, why)
        .challenged("Bearer realm=\"gristmill\", error=\"invalid_token\"".to_owned())
}

/// The token that this is the hash of. All of them are compared, whichever it is.
fn among(tokens: &[Arc<Known>], digest: &Digest) -> Option<Arc<Known>> {
    let mut found = u64::MAX;
    for (at, known) in (0u64..).zip(tokens) {
        found.conditional_assign(&at, known.digest.is(digest));
    }
    let known = tokens.get(usize::try_from(found).ok()?)?;
    (!known.is_over(SystemClock::default().now())).then(|| known.clone())
}

/// What is shown: nothing, something that has no token's form, or a token.
fn bearer(headers: &HeaderMap) -> Option<Option<Secret>> {
    let mut said = headers.get_all(header::AUTHORIZATION).iter();
    let first = said.next()?;
    if said.next().is_some() {
        // Who reads the one and who reads the other must not think different things.
        return Some(None);
    }
    let text = first.to_str().unwrap_or_default();
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Some(None);
    }
    Some(Secret::shown_as(token.trim()))
}

/// What cookies of sessions say. There may be several: a service below a prefix of a name
/// and another one at the name itself do not know of each other.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = Digest> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|said| said.to_str().ok());
    let pairs = all.flat_map(|said| said.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let ours = pairs.filter(|(name, _)| *name == SESSION).take(COOKIES);
    ours.filter_map(|(_, value)| Secret::shown_as(value)).map(|secret| secret.digest())
}

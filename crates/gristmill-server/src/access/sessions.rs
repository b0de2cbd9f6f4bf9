//! Browsers that have shown a token: what each says afterwards instead of it.
//!
//! A browser keeps a random secret, never the token, and the service keeps what that
//! hashes to, in memory alone: a service that starts again knows nobody. A session is good
//! for nothing that its token is not good for at that moment.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gristmill::StoreError;

use super::record::Known;
use super::secret::{Digest, Secret};

/// How long a session lasts: a working day.
pub(crate) const LASTS: Duration = Duration::from_secs(12 * 60 * 60);
/// Most sessions at once; one more ends the oldest.
const SESSIONS: usize = 1_000;

/// The sessions of this process, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<VecDeque<Session>>);

#[derive(Debug)]
struct Session {
    digest: Digest,
    token: Arc<Known>,
    begun: Instant,
}

impl Sessions {
    /// A new one of who has shown this token. Returns what its browser is to say.
    pub(super) fn begin(&self, token: Arc<Known>, now: Instant) -> Result<Secret, StoreError> {
        let secret = Secret::random()?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while all.len() >= SESSIONS {
            all.pop_front();
        }
        all.push_back(Session { digest: secret.digest(), token, begun: now });
        Ok(secret)
    }

    /// The token that was shown for it, unless it is over. All of them are compared,
    /// whichever it is.
    pub(super) fn token(&self, digest: &Digest, now: Instant) -> Option<Arc<Known>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|session| now.saturating_duration_since(session.begun) < LASTS);
        let mut found = None;
        for session in all.iter() {
            if bool::from(session.digest.is(digest)) {
                found = Some(session.token.clone());
            }
        }
        found
    }

    /// Ends it, if it is there.
    pub(super) fn end(&self, digest: &Digest) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|session| !bool::from(session.digest.is(digest)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::reach::Reach;
    use super::*;

    fn token() -> Arc<Known> {
        Arc::new(Known {
            name: "t".to_owned(),
            digest: Secret::random().expect("randomness").digest(),
            scopes: Vec::new(),
            reach: Reach::all(),
            expires_at: None,
        })
    }

    #[test]
    fn a_session_ends() {
        let (sessions, begin) = (Sessions::default(), Instant::now());
        let one = sessions.begin(token(), begin).expect("randomness").digest();
        let other = sessions.begin(token(), begin).expect("randomness").digest();
        let last = begin + LASTS - Duration::from_secs(1);
        assert!(sessions.token(&one, last).is_some() && sessions.token(&other, last).is_some());
        sessions.end(&one);
        assert!(sessions.token(&one, last).is_none() && sessions.token(&other, last).is_some());
        assert!(sessions.token(&other, begin + LASTS).is_none());
    }

    #[test]
    fn the_oldest_makes_room() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let token = token();
        let mut all = Vec::new();
        for _ in 0..=SESSIONS {
            all.push(sessions.begin(token.clone(), now).expect("randomness").digest());
        }
        let known: Vec<bool> = all.iter().map(|one| sessions.token(one, now).is_some()).collect();
        assert_eq!(known.iter().filter(|known| **known).count(), SESSIONS);
        assert_eq!((known.first(), known.last()), (Some(&false), Some(&true)));
    }
}

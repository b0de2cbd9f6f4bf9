//! Clients of a run: each does what its role does, by its own dice, until it is
//! told to leave or is killed, and writes all of it down.

mod dice;
mod drain;
mod operator;
mod producer;
mod scheduler;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gristmill_core::Store;

use super::journal::Journal;
use super::noted::Noted;
pub use dice::Dice;
pub use drain::drain;

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Puts.
    Producer,
    /// Claims, extends and settles.
    Worker,
    /// Retries, resolves, discards, cancels, pauses and resumes.
    Operator,
    /// Fires a schedule.
    Scheduler,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 4] = [Role::Producer, Role::Worker, Role::Operator, Role::Scheduler];

    /// Its name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Role::Producer => "producer",
            Role::Worker => "worker",
            Role::Operator => "operator",
            Role::Scheduler => "scheduler",
        }
    }
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Role::ALL.into_iter().find(|role| role.word() == word);
        found.ok_or_else(|| format!("'{word}' is not what a client can be"))
    }
}

/// Says when a client has to leave.
pub type Leave = Arc<dyn Fn() -> bool + Send + Sync>;

/// A client: a store that is written down, dice, and the word to leave.
pub struct Client {
    noted: Noted,
    dice: Dice,
    leave: Leave,
    lease: Duration,
    /// Whether it rests between calls, so that the machine is not its limit.
    rests: bool,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("noted", &self.noted).finish_non_exhaustive()
    }
}

/// How long a client waits before it asks again what went without an answer.
const AGAIN: Duration = Duration::from_millis(15);

impl Client {
    /// A client with a journal of this name in the folder.
    ///
    /// # Errors
    /// When the journal cannot be made.
    pub fn new(
        store: Arc<dyn Store>,
        folder: &Path,
        name: &str,
        seed: u64,
        leave: Leave,
    ) -> std::io::Result<Self> {
        let noted = Noted { store, journal: Journal::open(folder, name)? };
        let lease = Duration::from_millis(super::LEASE_MS);
        Ok(Client { noted, dice: Dice::of(seed, name), leave, lease, rests: true })
    }

    /// Whether it rests between calls, or goes as fast as the store does.
    #[must_use]
    pub fn rests(mut self, rests: bool) -> Self {
        self.rests = rests;
        self
    }

    /// Does what its role does, until it has to leave.
    pub async fn run(mut self, role: Role) {
        match role {
            Role::Producer => self.produce().await,
            Role::Worker => self.work().await,
            Role::Operator => self.operate().await,
            Role::Scheduler => self.schedule().await,
        }
    }

    fn has_to_leave(&self) -> bool {
        (self.leave)()
    }

    async fn pause(&mut self, at_most: Duration) {
        let millis = u64::try_from(at_most.as_millis()).unwrap_or(1).max(1);
        let nap = Duration::from_millis(1 + self.dice.throw() % millis);
        self.rest(nap).await;
    }

    async fn rest(&self, nap: Duration) {
        if self.rests {
            tokio::time::sleep(nap).await;
        } else {
            tokio::task::yield_now().await;
        }
    }
}

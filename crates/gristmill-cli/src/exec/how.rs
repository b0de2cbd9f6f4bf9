//! How a queue's tasks are handled: said at the start, and said otherwise by a reload
//! for the attempts that begin after it.

use std::sync::{Arc, Mutex, PoisonError};

use gristmill::StoreUrl;

use crate::contracts::Contracts;
use crate::hook::Hook;

/// By what tasks are handled.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Means {
    /// By a command that is run for each.
    Program(String),
    /// By a command that stays, and is given one after the other.
    Stays(String),
    /// By a URL.
    Hook(Arc<Hook>),
}

/// How tasks are handled.
#[derive(Debug)]
pub(crate) struct How {
    pub(crate) means: Means,
    /// Programs get JSON where a contract knows how.
    pub(crate) contracts: Arc<Contracts>,
    /// The store's URL, for handlers that shall have it.
    pub(crate) store: Option<StoreUrl>,
}

/// What a handler was told last.
#[derive(Debug, Clone)]
pub(crate) struct Told(Arc<Mutex<Arc<How>>>);

impl Told {
    pub(crate) fn new(how: How) -> Self {
        Told(Arc::new(Mutex::new(Arc::new(how))))
    }

    /// For an attempt that begins: it keeps to it whatever is said meanwhile.
    pub(crate) fn now(&self) -> Arc<How> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From the next attempt on.
    pub(crate) fn say(&self, how: How) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(how);
    }
}

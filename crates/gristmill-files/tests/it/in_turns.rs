//! A store whose calls go to several handles of one folder in turns.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use gristmill_core::{Capabilities, Limits, Store};

/// Every so many calls a handle is replaced by one that reads the folder.
const RENEWED: usize = 17;

type Open = Box<dyn Fn() -> Arc<dyn Store> + Send + Sync>;

pub(crate) struct InTurns {
    handles: Mutex<Vec<Arc<dyn Store>>>,
    open: Open,
    calls: AtomicUsize,
    limits: Limits,
    capabilities: Capabilities,
}

impl std::fmt::Debug for InTurns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InTurns")
    }
}

impl InTurns {
    pub(crate) fn new(handles: Vec<Arc<dyn Store>>, open: Open) -> Self {
        let (limits, capabilities) = (handles[0].limits().clone(), handles[0].capabilities());
        let (handles, calls) = (Mutex::new(handles), AtomicUsize::new(0));
        InTurns { handles, open, calls, limits, capabilities }
    }

    fn turn(&self) -> Arc<dyn Store> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let mut handles = self.handles.lock().unwrap();
        let at = call % handles.len();
        if call % RENEWED == RENEWED - 1 {
            handles[at] = (self.open)();
        }
        handles[at].clone()
    }

    /// Marks are of one handle, and so is who waits from them.
    fn first(&self) -> Arc<dyn Store> {
        self.handles.lock().unwrap()[0].clone()
    }
}

macro_rules! in_turns {
    (now $self:ident.limits()) => { &$self.limits };
    (now $self:ident.capabilities()) => { $self.capabilities };
    (now $self:ident.$verb:ident()) => { $self.first().$verb() };
    ($self:ident.wait($queues:ident, $since:ident, $timeout:ident)) => {
        $self.first().wait($queues, $since, $timeout).await
    };
    ($self:ident.wait_ended($since:ident, $timeout:ident)) => {
        $self.first().wait_ended($since, $timeout).await
    };
    ($self:ident.close()) => {{
        let handles = $self.handles.lock().unwrap().clone();
        for handle in handles {
            handle.close().await?;
        }
        Ok(())
    }};
    ($self:ident.$verb:ident($($given:ident),*)) => { $self.turn().$verb($($given),*).await };
}

gristmill_core::delegate_store!(InTurns, in_turns);

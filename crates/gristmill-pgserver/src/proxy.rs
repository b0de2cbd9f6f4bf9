//! What a network can do to a connection: a proxy in front of a server's port
//! that falls silent without closing anything.
//!
//! With threads, because a proxy must go on whatever the test's runtime does.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::{Error, Result};

/// A port on 127.0.0.1 that leads to a server's, or nowhere. It ends with the
/// value.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    lines: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    /// Both ends of each connection that stands, by its number.
    taken: Vec<(usize, TcpStream)>,
    /// How many were taken.
    count: usize,
    /// Those up to this number carry nothing any more.
    silent: usize,
    ended: bool,
}

impl Proxy {
    /// A proxy to this port on 127.0.0.1.
    ///
    /// # Errors
    /// When there is no port left.
    pub fn to(port: u16) -> Result<Self> {
        Self::start(Some(port))
    }

    /// A port that takes connections and never answers.
    ///
    /// # Errors
    /// When there is no port left.
    pub fn silent() -> Result<Self> {
        Self::start(None)
    }

    fn start(to: Option<u16>) -> Result<Self> {
        let none = |error| Error::new(format!("no port for a proxy on 127.0.0.1: {error}"));
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(none)?;
        let port = listener.local_addr().map_err(none)?.port();
        let state = Arc::new(State::default());
        let shared = state.clone();
        thread::spawn(move || {
            for near in listener.incoming() {
                if shared.lines().ended {
                    return;
                }
                match near {
                    Ok(near) => shared.take(near, to),
                    // None is free for now, of files or memory: that passes.
                    Err(_) => thread::yield_now(),
                }
            }
        });
        Ok(Proxy { port, state })
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on the connections that stand carry nothing in either direction,
    /// and nobody is told; new ones do.
    pub fn stall(&self) {
        let mut lines = self.state.lines();
        lines.silent = lines.count;
    }

    /// Connections taken so far.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.state.lines().count
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        {
            let mut lines = self.state.lines();
            lines.ended = true;
            for (_, line) in &lines.taken {
                // The other side may have closed it.
                let _ = line.shutdown(Shutdown::Both);
            }
        }
        self.state.changed.notify_all();
        // The listener looks at the word only when somebody comes.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl State {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        // Numbers and sockets are valid whatever a panicking holder did.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(self: &Arc<Self>, near: TcpStream, to: Option<u16>) {
        let far = to.map(|port| TcpStream::connect(("127.0.0.1", port)));
        let mut lines = self.lines();
        lines.count += 1;
        let number = lines.count;
        match far {
            None => lines.taken.push((number, near)),
            // The server is away: so is this connection.
            Some(Err(_)) => {}
            Some(Ok(far)) => {
                let clones = (near.try_clone(), far.try_clone());
                let (Ok(near_too), Ok(far_too)) = clones else { return };
                let keep = (near.try_clone(), far.try_clone());
                let keep = [keep.0, keep.1].into_iter().flatten();
                lines.taken.extend(keep.map(|end| (number, end)));
                for (from, to) in [(near, far_too), (far, near_too)] {
                    let state = self.clone();
                    thread::spawn(move || state.carry(number, from, to));
                }
            }
        }
    }

    /// Carries bytes in one direction, until one side ends or the line falls
    /// silent.
    fn carry(&self, number: usize, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 16 * 1024];
        loop {
            let read = from.read(&mut bytes).unwrap_or(0);
            if self.is_silent(number) {
                self.wait_for_the_end();
                return;
            }
            let sent = bytes.get(..read).filter(|bytes| !bytes.is_empty());
            if sent.is_none_or(|sent| to.write_all(sent).is_err()) {
                let _ = to.shutdown(Shutdown::Both);
                // What is kept stays open: a run that goes on for long has thousands.
                self.lines().taken.retain(|(taken, _)| *taken != number);
                return;
            }
        }
    }

    fn is_silent(&self, number: usize) -> bool {
        number <= self.lines().silent
    }

    /// Holds the sockets open.
    fn wait_for_the_end(&self) {
        let mut lines = self.lines();
        while !lines.ended {
            lines = self.changed.wait(lines).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

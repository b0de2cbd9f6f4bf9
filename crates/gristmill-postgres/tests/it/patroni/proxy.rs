//! A way to a port that can be cut: nothing passes then, and nobody is told, as
//! with a cable that was pulled.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often a cut is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Whether the way is cut; shared by all ways of a node.
pub(crate) type Cut = Arc<AtomicBool>;

/// Leads to `target` from now on; returns the port to use instead of it.
pub(crate) fn lead_to(target: u16, cut: &Cut) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let cut = cut.clone();
    thread::spawn(move || {
        for from in listener.incoming().flatten() {
            let cut = cut.clone();
            thread::spawn(move || pass(&from, target, &cut));
        }
    });
    port
}

fn pass(from: &TcpStream, target: u16, cut: &Cut) {
    wait(cut);
    let Ok(to) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)) else { return };
    let (Ok(back_from), Ok(back_to)) = (to.try_clone(), from.try_clone()) else { return };
    for stream in [from, &to] {
        let _ = stream.set_nodelay(true);
        let _ = stream.set_read_timeout(Some(LOOK));
    }
    let other = cut.clone();
    let back = thread::spawn(move || copy(&back_from, &back_to, &other));
    copy(from, &to, cut);
    let _ = back.join();
}

fn copy(mut from: &TcpStream, mut to: &TcpStream, cut: &Cut) {
    let mut buffer = [0u8; 65_536];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                wait(cut);
                if to.write_all(&buffer[..read]).is_err() {
                    break;
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    // Also the end of a connection does not pass a cut.
    wait(cut);
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

fn wait(cut: &Cut) {
    while cut.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
    }
}

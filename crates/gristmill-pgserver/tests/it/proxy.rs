//! A proxy in front of a server.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use gristmill_pgserver::Proxy;

/// A line through the proxy to a server that says everything again.
fn line(proxy: &Proxy, listener: &TcpListener) -> TcpStream {
    let near = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    near.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    std::thread::spawn(move || {
        let mut byte = [0];
        while far.read(&mut byte).is_ok_and(|read| read == 1) {
            let _ = far.write_all(&byte);
        }
    });
    near
}

fn is_heard(line: &mut TcpStream) -> bool {
    line.write_all(b"x").unwrap();
    line.read(&mut [0]).is_ok_and(|read| read == 1)
}

#[test]
fn what_stalls_says_nothing_and_new_lines_do() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let proxy = Proxy::to(listener.local_addr().unwrap().port()).unwrap();
    let mut old = line(&proxy, &listener);
    assert!(is_heard(&mut old));
    proxy.stall();
    assert!(!is_heard(&mut old), "it is open and silent");
    assert!(is_heard(&mut line(&proxy, &listener)));
    drop(proxy);
    assert!(!old.read(&mut [0]).is_ok_and(|read| read > 0));
}

#[test]
fn a_silent_port_takes_connections() {
    let proxy = Proxy::silent().unwrap();
    let mut line = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    line.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(line.read(&mut [0]).is_err());
}

/// How many files this process has open.
#[cfg(target_os = "linux")]
fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[cfg(target_os = "linux")]
#[test]
fn a_line_that_ended_keeps_nothing_open() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let proxy = Proxy::to(listener.local_addr().unwrap().port()).unwrap();
    let before = open_files();
    for _ in 0..30 {
        assert!(is_heard(&mut line(&proxy, &listener)));
    }
    // Threads close what they hold when they hear of the end.
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while open_files() > before && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_eq!(open_files(), before);
}

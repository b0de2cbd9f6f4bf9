//! Workers over a PostgreSQL that falls silent or fails over: they go on by
//! themselves, run nothing twice, and can be stopped meanwhile.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gristmill::Mill;
use gristmill::worker::{Context, Worker, WorkerHandle};
use gristmill_pgserver::{PrivateServer, Proxy, Server};

use crate::Mail;

/// Short limits, so that a test need not wait for the real ones.
const WORDS: &str = "timeout=2s&heartbeat_timeout=1s&operator_timeout=3s&connect_timeout=2";
/// What everything must go on within, once it can.
const SOON: Duration = Duration::from_secs(10);

async fn made<T: Send + 'static>(
    make: impl FnOnce() -> gristmill_pgserver::Result<T> + Send + 'static,
) -> T {
    tokio::task::spawn_blocking(make).await.unwrap().unwrap()
}

async fn until(what: &str, holds: impl AsyncFnMut() -> bool) {
    crate::within(SOON, what, holds).await;
}

/// How often each mail was sent.
type Sent = Arc<Mutex<HashMap<String, u32>>>;

/// A mill that puts, and a worker with a mill of its own.
async fn at_work(url: &str) -> (Mill, WorkerHandle, Sent) {
    let url = format!("{url}?{WORDS}");
    let (mill, other) = (Mill::open(&url).await.unwrap(), Mill::open(&url).await.unwrap());
    mill.declare::<Mail>().await.unwrap();
    let sent = Sent::default();
    let seen = sent.clone();
    let worker = Worker::new(&other).handle(move |mail: Mail, _: Context| {
        *seen.lock().unwrap().entry(mail.to).or_default() += 1;
        async { Ok::<(), String>(()) }
    });
    let worker = worker.stop_within(Duration::from_secs(3)).start().await.unwrap();
    mill.put(Mail::to("first")).await.unwrap();
    until("the first mail", async || sent.lock().unwrap().contains_key("first")).await;
    (mill, worker, sent)
}

/// Puts a mail, again while the store is away, and waits until it is sent.
async fn goes_on(mill: &Mill, sent: &Sent, to: &str) {
    until("a put", async || mill.put(Mail::to(to)).id(to).await.is_ok()).await;
    until("the mail", async || sent.lock().unwrap().contains_key(to)).await;
}

fn once_each(sent: &Sent) {
    let sent = sent.lock().unwrap();
    assert!(sent.values().all(|times| *times == 1), "{sent:?}");
}

/// A firewall that forgot its states.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_half_open_connections_a_worker_goes_on() {
    let server = made(Server::private).await;
    let proxy = Proxy::to(server.port()).unwrap();
    let (mill, worker, sent) = at_work(&server.tcp_url_over(&[proxy.port()], "postgres")).await;
    proxy.stall();
    goes_on(&mill, &sent, "second").await;
    worker.stop().await.unwrap();
    once_each(&sent);
}

fn fail_over(primary: &PrivateServer, standby: &PrivateServer) {
    primary.demote().unwrap();
    standby.promote().unwrap();
}

/// The connections stay, and every write over them is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_a_demoted_primary_a_worker_moves_on() {
    let (primary, standby) = made(|| {
        let primary = Server::primary()?;
        let standby = primary.standby("standby")?;
        Ok((primary, standby))
    })
    .await;
    let url = primary.tcp_url_over(&[primary.port(), standby.port()], "postgres");
    let (mill, worker, sent) = at_work(&url).await;
    // The first mail is settled, and the standby knows it: it does not wait for one,
    // and whatever it missed would be sent again.
    let left = "SELECT count(*) FROM gristmill.task";
    until("it is settled", async || primary.psql("postgres", left).is_ok_and(|n| n == "0")).await;
    let end = primary.psql("postgres", "SELECT pg_current_wal_insert_lsn()").unwrap();
    let has_it = format!("SELECT pg_last_wal_replay_lsn() >= '{end}'");
    until("it follows", async || standby.psql("postgres", &has_it).is_ok_and(|is| is == "t")).await;
    fail_over(&primary, &standby);
    goes_on(&mill, &sent, "second").await;
    worker.stop().await.unwrap();
    once_each(&sent);
}

/// A stop does not wait for a server that does not answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_is_stopped_while_its_server_is_frozen() {
    let server = made(Server::private).await;
    let (mill, worker, sent) = at_work(&server.tcp_url_of("postgres")).await;
    server.freeze().unwrap();
    // Its three seconds and the two of every stop; two more for a busy machine.
    let stopped = tokio::time::timeout(Duration::from_secs(7), worker.stop()).await;
    assert!(stopped.is_ok(), "it did not stop");
    let refused = mill.put(Mail::to("second")).await;
    assert!(refused.is_err());
    server.thaw().unwrap();
    once_each(&sent);
}

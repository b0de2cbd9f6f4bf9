//! Hearing that a queue has work: a connection of its own that listens, tries
//! itself, and is made anew; and polling beneath, for what nobody told.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_core::{QueueName, WakeSignal};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, interval, sleep, timeout, timeout_at};
use tokio_postgres::Client;

use crate::answer::column;
use crate::errors::told;
use crate::notifier::{EVERYWHERE, send};
use crate::pool::Pool;
use crate::server::{Need, Reached, Server, Wanted};
use crate::sql::{Sql, at};

/// How often a sound listener is tried: a notice to itself must arrive.
const PROBE: Duration = Duration::from_secs(20);
/// How often its server is asked for a sign of life, which costs no transaction.
const SIGN: Duration = Duration::from_secs(1);
/// ... and both come within this time.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often workers look by themselves while notices arrive.
const CALM: Duration = Duration::from_secs(20);
/// ... while work is found that nobody told of, as by producers that speak SQL,
const WARY: Duration = Duration::from_secs(1);
/// ... and while notices do not arrive.
const ALONE: Duration = Duration::from_millis(100);
/// How long after such work they look so often.
const WARY_FOR: Duration = Duration::from_secs(60);
/// The longest wait before the next try to listen.
const LONGEST: Duration = Duration::from_secs(2);

/// What the listener and its store share.
#[derive(Debug)]
pub(crate) struct Ear {
    pub(crate) wake: Arc<WakeSignal>,
    /// Whether notices arrive.
    pub(crate) hears: AtomicBool,
    /// The server's number for the connection that listens; 0 for none.
    pub(crate) connection: AtomicI32,
    pub(crate) id: String,
    /// When work was last found that nobody told of.
    untold: Mutex<Option<Instant>>,
    /// It is time to look more often.
    changed: Notify,
}

impl Ear {
    pub(crate) fn new(id: String) -> Self {
        Ear {
            wake: Arc::default(),
            hears: AtomicBool::new(false),
            connection: AtomicI32::new(0),
            id,
            untold: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Work was found that stood there for a while: perhaps nobody told of it.
    pub(crate) fn found_untold(&self) {
        let before = self.untold().replace(Instant::now());
        if before.is_none_or(|at| at.elapsed() >= WARY_FOR) {
            self.changed.notify_one();
        }
    }

    /// Whether notices tell of everything, as far as is known.
    pub(crate) fn is_told(&self) -> bool {
        let is_wary = self.untold().is_some_and(|at| at.elapsed() < WARY_FOR);
        self.hears.load(Ordering::Relaxed) && !is_wary
    }

    fn untold(&self) -> MutexGuard<'_, Option<Instant>> {
        // A time is valid whatever a panicking holder did.
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long to wait before the next look.
    fn pause(&self) -> Duration {
        match self.hears.load(Ordering::Relaxed) {
            false => ALONE,
            true if self.is_told() => CALM,
            true => WARY,
        }
    }

    /// Notices arrive, or they do not.
    fn set_hears(&self, hears: bool) {
        if self.hears.swap(hears, Ordering::Relaxed) && !hears {
            self.connection.store(0, Ordering::Relaxed);
            // What was not told of since then is found now.
            self.wake.wake_all();
            self.changed.notify_one();
        }
    }
}

/// Starts listening and polling; both end when the pool is closed.
pub(crate) fn start(ear: &Arc<Ear>, pool: &Arc<Pool>, server: Option<Server>) {
    let (polled, pool_of_poll) = (ear.clone(), pool.clone());
    pool.driver.spawn(async move {
        while !pool_of_poll.is_closed() {
            tokio::select! {
                () = sleep(jittered(polled.pause())) => polled.wake.wake_all(),
                () = polled.changed.notified() => {}
                () = pool_of_poll.closed() => return,
            }
        }
    });
    let Some(server) = server else {
        tracing::debug!("nowhere to listen for wake-ups: workers poll");
        return;
    };
    let (ear, shared) = (ear.clone(), pool.clone());
    pool.driver.spawn(async move {
        let pool = shared;
        let mut pause = Duration::from_millis(50);
        while !pool.is_closed() {
            let begun = Instant::now();
            let why = tokio::select! {
                why = listen(&ear, &pool, &server) => why,
                () = pool.closed() => return,
            };
            ear.set_hears(false);
            if begun.elapsed() > LONGEST {
                pause = Duration::from_millis(50);
            }
            tracing::warn!(why, "wake-ups are not heard: workers poll meanwhile");
            tokio::select! {
                () = sleep(jittered(pause)) => {}
                () = pool.closed() => return,
            }
            pause = (pause * 2).min(LONGEST);
        }
    });
}

/// Listens until something is wrong, and says what.
async fn listen(ear: &Ear, pool: &Pool, server: &Server) -> String {
    let (heard, mut notices) = mpsc::channel(64);
    // Past a pooler: what is asked of the server is for this connection alone.
    let limit = Some(pool.timeouts.flow);
    // Notices travel from where others write.
    let wanted = Wanted { need: Need::Write, limit, heard: Some(heard) };
    // Its line is cut when this ends: nobody waits for what it still owes.
    let mut reached = match server.reach(&pool.driver, wanted).await {
        Ok(reached) => reached,
        Err(error) => return error.whole(),
    };
    let why = attend(ear, pool, &reached, &mut notices).await;
    reached.line.cut();
    why
}

async fn attend(
    ear: &Ear,
    pool: &Pool,
    reached: &Reached,
    notices: &mut mpsc::Receiver<String>,
) -> String {
    let Reached { client, line, session, .. } = reached;
    // Before anything can be heard: its answer would wait behind notices that nobody
    // takes yet.
    let attend = client.query_typed(pool.texts.of(Sql::Attend), &[]);
    match timeout(PATIENCE, attend).await {
        Ok(Ok(rows)) => {
            let connection = rows.first().and_then(|r| column(r, at!(Attend.connection)).ok());
            ear.connection.store(connection.unwrap_or(0), Ordering::Relaxed);
        }
        Ok(Err(error)) => return told(&error),
        Err(_) => return format!("no answer within {PATIENCE:?}"),
    }
    let listen = format!("LISTEN \"{}\"", pool.texts.channel());
    match timeout(PATIENCE, client.batch_execute(&listen)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return told(&error),
        Err(_) => return format!("no answer within {PATIENCE:?}"),
    }
    // Listening first, then looking: what came in between is not missed.
    ear.wake.wake_all();
    let probe = format!("? {}", ear.id);
    let mut deadline = Instant::now();
    let mut awaited = false;
    let mut signs = interval(SIGN);
    let mut meanwhile = VecDeque::new();
    loop {
        let heard = tokio::select! {
            biased;
            words = std::future::ready(meanwhile.pop_front()), if !meanwhile.is_empty() => Ok(words),
            heard = timeout_at(deadline, notices.recv()) => heard,
            _ = signs.tick() => match sign_of_life(client, notices, &mut meanwhile).await {
                // Demoted, with its connections left alone: others write elsewhere,
                // and their notices never come here.
                Ok(()) if line.refuses_writes() && !session.is_read_only => {
                    return "the server takes no writes any more".to_owned();
                }
                Ok(()) => continue,
                Err(why) => return why,
            },
            // A server was lost: perhaps the one that is listened to.
            () = pool.forsaken(), if !awaited => {
                deadline = Instant::now();
                continue;
            }
        };
        match heard {
            Ok(None) => return "the connection ended".to_owned(),
            Ok(Some(words)) if words == probe => {
                ear.set_hears(true);
                awaited = false;
                deadline = Instant::now() + PROBE;
            }
            Ok(Some(words)) => hear(ear, &words),
            Err(_) if awaited => return "a notice to ourselves did not arrive".to_owned(),
            Err(_) => {
                // Over another connection, as others' notices come: it must not
                // be waited for longer than for its arrival.
                let _ = timeout(PATIENCE, send(pool, &probe)).await;
                awaited = true;
                deadline = Instant::now() + PATIENCE;
            }
        }
    }
}

/// Asks the server for a sign of life. Notices are taken meanwhile: it comes behind
/// them, over the same connection.
async fn sign_of_life(
    client: &Client,
    notices: &mut mpsc::Receiver<String>,
    meanwhile: &mut VecDeque<String>,
) -> Result<(), String> {
    let mut sign = pin!(timeout(PATIENCE, client.check_connection()));
    loop {
        tokio::select! {
            sign = &mut sign => return match sign {
                Ok(sign) => sign.map_err(|error| told(&error)),
                Err(_) => Err(format!("no sign of life within {PATIENCE:?}")),
            },
            Some(words) = notices.recv() => meanwhile.push_back(words),
        }
    }
}

/// A notice: a queue's name, and who sent it unless it came from SQL.
fn hear(ear: &Ear, words: &str) {
    let (name, sender) = words.split_once(' ').unwrap_or((words, ""));
    // Our own workers were woken before the notice was sent.
    if sender == ear.id {
        return;
    }
    match name {
        // Leases may run out sooner than who sweeps thinks.
        "!" => return ear.wake.stir(),
        // A task has ended that somebody waits for.
        "#" => return ear.wake.wake_ended(),
        EVERYWHERE => return ear.wake.wake_all(),
        _ => {}
    }
    match QueueName::new(name) {
        Ok(queue) => ear.wake.wake(&[queue]),
        Err(_) => tracing::debug!("a notice that names no queue"),
    }
}

/// A time within a quarter of this one, so that many processes do not look at
/// once.
pub(crate) fn jittered(around: Duration) -> Duration {
    let mut random = [0u8; 1];
    // Without randomness the middle is as good as any.
    let part = match getrandom::fill(&mut random) {
        Ok(()) => u32::from(random[0]),
        Err(_) => 128,
    };
    around.mul_f64(0.75) + around.mul_f64(0.5) * part / 255
}

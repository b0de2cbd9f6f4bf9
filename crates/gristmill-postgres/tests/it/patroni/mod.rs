//! Failovers under load: three servers under Patroni with quorum commit lose their
//! leader again and again, in four ways, while one process puts and works.
//!
//! `./test --long` installs what is needed and runs it. By hand:
//! `GRISTMILL_PATRONI=venv/bin GRISTMILL_FAILOVERS=3 cargo nextest run -p
//! gristmill-postgres --run-ignored all -E 'test(patroni)' --no-capture`, and with
//! `GRISTMILL_FAILOVER_WAYS=kill,cut` only these.

mod clients;
mod cluster;
mod proxy;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gristmill_core::{Declaration, Origin, QueueName, SettingsPatch, Store};
use gristmill_postgres::{Options, PostgresStore};

use clients::Records;
use cluster::Cluster;

const PUTTERS: u32 = 48;
const WORKERS: usize = 4;
/// Acknowledged puts a second that are asked for before a run proves anything.
const RATE: usize = 1_000;
/// Calm before each failover, in which the rate is measured.
const CALM: Duration = Duration::from_secs(5);
/// Longest until puts are acknowledged again.
const BACK: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Kill,
    Freeze,
    SwitchOver,
    Cut,
}

const WAYS: [(&str, Way); 4] = [
    ("kill", Way::Kill),
    ("freeze", Way::Freeze),
    ("switchover", Way::SwitchOver),
    ("cut", Way::Cut),
];

/// All of them in turn, or those that were asked for.
fn ways() -> Vec<Way> {
    let asked = std::env::var("GRISTMILL_FAILOVER_WAYS").unwrap_or_default();
    let is_asked = |name: &str| asked.is_empty() || asked.split(',').any(|word| word == name);
    WAYS.iter().filter(|(name, _)| is_asked(name)).map(|(_, way)| *way).collect()
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs Patroni and etcd, and some 25 minutes: ./test --long"]
async fn patroni_failovers_lose_nothing_acknowledged() {
    let programs = std::env::var_os("GRISTMILL_PATRONI").map(PathBuf::from);
    let programs = programs.expect("GRISTMILL_PATRONI names the folder of patroni and etcd");
    let (rounds, ways) = (number("GRISTMILL_FAILOVERS", 30), ways());
    let mut cluster = tokio::task::spawn_blocking(move || Cluster::start(&programs)).await.unwrap();
    let store: Arc<dyn Store> =
        Arc::new(PostgresStore::open(&cluster.url(), Options::default()).await.expect("a store"));
    let queue = QueueName::new("failover").unwrap();
    let declaration = Declaration {
        name: queue.clone(),
        number: None,
        settings: SettingsPatch { max_attempts: Some(None), ..SettingsPatch::default() },
        origin: Origin::Code,
    };
    store.declare_queue(declaration).await.expect("a queue");
    let records = Arc::new(Records::default());
    let pace = Duration::from_secs(1) * PUTTERS / number("GRISTMILL_RATE", RATE * 5 / 4) as u32;
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..PUTTERS {
        running.spawn(clients::put(store.clone(), queue.clone(), records.clone(), pace));
    }
    for _ in 0..WORKERS {
        running.spawn(clients::work(store.clone(), queue.clone(), records.clone(), 200, None));
    }
    let stale = Some(Duration::from_secs(6));
    running.spawn(clients::work(store.clone(), queue.clone(), records.clone(), 5, stale));

    let (mut rates, mut backs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        tokio::time::sleep(CALM).await;
        let way = ways[round % ways.len()];
        let event = Instant::now();
        let before = event.checked_sub(CALM).unwrap();
        rates.push(records.acknowledged_within(before, event) / CALM.as_secs() as usize);
        let leader;
        (cluster, leader) = tokio::task::spawn_blocking(move || {
            let leader = cluster.leader(None).expect("somebody leads");
            match way {
                Way::Kill => cluster.nodes[leader].kill(),
                Way::Freeze => cluster.nodes[leader].signal("STOP"),
                Way::SwitchOver => assert!(cluster.switch_over(leader), "no switch-over"),
                Way::Cut => cluster.nodes[leader].cut(true),
            }
            (cluster, leader)
        })
        .await
        .unwrap();
        // Another one leads, and only then is an answer one of the new leader's.
        let led;
        (cluster, led) = tokio::task::spawn_blocking(move || {
            let start = Instant::now();
            loop {
                match cluster.leader(Some(leader)) {
                    Some(now) if now != leader => break,
                    _ => assert!(start.elapsed() < BACK, "round {round}, {way:?}: nobody leads"),
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            (cluster, Instant::now())
        })
        .await
        .unwrap();
        let back = loop {
            if let Some(back) = records.back_after(led) {
                break led - event + back;
            }
            assert!(
                led.elapsed() < BACK,
                "round {round}, {way:?}: no put is acknowledged {BACK:?} after another server \
                 leads; {}",
                told(&records)
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        println!(
            "{round:2} {way:?} of {}: {} puts/s before; another led after {:.1} s, acknowledged after {:.1} s",
            cluster.nodes[leader].name,
            rates.last().unwrap(),
            (led - event).as_secs_f64(),
            back.as_secs_f64()
        );
        backs.push(back);
        cluster = tokio::task::spawn_blocking(move || {
            match way {
                Way::Kill => cluster.begin(leader),
                Way::Freeze => cluster.nodes[leader].signal("CONT"),
                Way::SwitchOver => {}
                Way::Cut => cluster.nodes[leader].cut(false),
            }
            cluster.wait_until_whole();
            cluster
        })
        .await
        .unwrap();
    }

    records.put_enough.store(true, Ordering::Relaxed);
    let start = Instant::now();
    loop {
        let stats = store.stats().await;
        let left = stats.ok().and_then(|all| all.first().map(gristmill_core::QueueStats::total));
        let acknowledged = records.acknowledged.lock().unwrap().len();
        let settled = records.done.lock().unwrap().len();
        if left == Some(0) || start.elapsed() > Duration::from_secs(300) {
            println!("{left:?} left, {acknowledged} acknowledged, {settled} settled");
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    records.worked_enough.store(true, Ordering::Relaxed);
    while tokio::time::timeout(Duration::from_secs(90), running.join_next())
        .await
        .is_ok_and(|x| x.is_some())
    {}
    drop(cluster);

    let done = records.done.lock().unwrap();
    let gone = records.gone.lock().unwrap();
    let acknowledged = records.acknowledged.lock().unwrap();
    let lost: Vec<u64> = acknowledged
        .iter()
        .map(|(number, ..)| *number)
        .filter(|number| !done.contains_key(number) && !gone.contains(number))
        .collect();
    let twice: Vec<u64> =
        done.iter().filter(|(_, tokens)| tokens.len() > 1).map(|(number, _)| *number).collect();
    rates.sort_unstable();
    backs.sort_unstable();
    let rate = rates[rates.len() / 2];
    println!(
        "{rounds} failovers at {rate} puts/s: {} acknowledged, {} accepted as done, {} lost, {} \
         accepted twice; {}; back after {:.1} s in the middle, {:.1} s at most",
        acknowledged.len(),
        done.len(),
        lost.len(),
        twice.len(),
        told(&records),
        backs[backs.len() / 2].as_secs_f64(),
        backs[backs.len() - 1].as_secs_f64()
    );
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    assert!(twice.is_empty(), "a stale settlement was accepted: {twice:?}");
    assert!(rate >= RATE, "{rate} puts/s prove nothing: {RATE} are asked for");
}

fn told(records: &Records) -> String {
    let count = |number: &std::sync::atomic::AtomicU64| number.load(Ordering::Relaxed);
    format!(
        "{} unknown, {} unavailable, {} hung, {} leases lost",
        count(&records.unknown),
        count(&records.unavailable),
        count(&records.hung),
        count(&records.lease_lost)
    )
}

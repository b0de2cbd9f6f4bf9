//! Every page beside a million others, measured. For the long form, optimised.

use std::time::{Duration, Instant};

use gristmill::Mill;
use gristmill::port::{
    ClaimRequest, Declaration, NewTask, Outcome, Payload, PutRequest, QueueName, Settlement, Start,
    Token, WorkerId,
};

use crate::client::{Site, request};

/// Of these many tasks, this many failed, and a few are of each kind that is looked for.
const STAND: usize = 1_000_000;
const FAILED: usize = 20_000;

fn task(n: usize) -> NewTask {
    NewTask::new(Payload::json(format!("{{\"order\":{n},\"note\":\"{}\"}}", "x".repeat(70))))
}

async fn put(mill: &Mill, queue: &str, count: usize, shape: impl Fn(usize) -> NewTask) {
    let queue = QueueName::new(queue).unwrap();
    let _ = mill.store().declare_queue(Declaration::new(queue.clone())).await.unwrap();
    for from in (0..count).step_by(5_000) {
        let tasks = (from..count.min(from + 5_000)).map(&shape).collect();
        let request = PutRequest { queue: queue.clone(), tasks, atomic: false };
        mill.store().put(request).await.unwrap();
    }
}

/// Claims so many; those fail for good where an error is given.
async fn claim(mill: &Mill, queue: &str, count: usize, error: Option<fn(usize) -> String>) {
    for from in (0..count).step_by(500) {
        let request = ClaimRequest {
            queue: QueueName::new(queue).unwrap(),
            max: 500.min(count - from),
            lease: Some(Duration::from_secs(3_600)),
            worker: WorkerId::new("worker-1").unwrap(),
            source: None,
            token: Token::random().unwrap(),
        };
        let claim = mill.store().claim(request).await.unwrap();
        let Some(error) = error else { continue };
        let ends =
            claim.tasks.iter().enumerate().map(|(n, task)| {
                Settlement::new(task.id, claim.token, Outcome::Fail(error(from + n)))
            });
        mill.store().settle(ends.collect()).await.unwrap();
    }
}

/// A million tasks in bursts, as they come in bulk: those that are asked for lie between.
async fn seed(mill: &Mill) {
    let error = |n: usize| match n % 4 {
        0 => format!("no route to 10.0.0.{}", n % 250),
        1 => format!("user {n} not found"),
        2 => format!("timed out after {n} ms"),
        _ => "disk full".to_owned(),
    };
    put(mill, "broken", FAILED, task).await;
    claim(mill, "broken", FAILED, Some(error)).await;
    put(mill, "bulk", 300_000, task).await;
    put(mill, "small", 300, task).await;
    let rare = |n: usize| NewTask { group: Some("rare".to_owned()), ..task(n) };
    put(mill, "bulk", 40, rare).await;
    let sourced = |n: usize| NewTask { source: Some("shop-7".to_owned()), ..task(n) };
    put(mill, "bulk", 40, sourced).await;
    put(mill, "keyed", 100_000, |n| NewTask { key: Some(format!("k{n}")), ..task(n) }).await;
    claim(mill, "keyed", 2_000, None).await;
    put(mill, "keyed", 2_000, |n| NewTask { key: Some(format!("k{n}")), ..task(n) }).await;
    let later = |n: usize| NewTask {
        start: Start::After(Duration::from_secs(3_600 + n as u64 % 7_200)),
        ..task(n)
    };
    put(mill, "later", 5_000, later).await;
    let left = STAND - FAILED - 300_000 - 300 - 80 - 102_000 - 5_000;
    put(mill, "other", left, task).await;
}

const PAGES: [&str; 43] = [
    "/",
    "/tasks",
    "/tasks?order=oldest",
    "/tasks?limit=500",
    "/tasks?queue=small",
    "/tasks?queue=small&order=oldest",
    "/tasks?queue=bulk",
    "/tasks?queue=bulk&state=ready",
    "/tasks?queue=other&order=oldest",
    "/tasks?queue=broken",
    "/tasks?queue=keyed&order=oldest",
    "/tasks?state=ready",
    "/tasks?state=delayed",
    "/tasks?state=delayed&order=oldest",
    "/tasks?state=delayed&queue=small",
    "/tasks?state=blocked",
    "/tasks?state=blocked&queue=bulk",
    "/tasks?state=processing",
    "/tasks?state=processing&queue=bulk",
    "/tasks?state=failed",
    "/tasks?state=failed&queue=small",
    "/tasks?state=failed&order=oldest",
    "/tasks?state=failed&error=user+17",
    "/tasks?state=done",
    "/tasks?key=k99999",
    "/tasks?key=k7&queue=keyed",
    "/tasks?group=rare",
    "/tasks?source=shop-7",
    "/tasks?source=shop-7&queue=bulk&state=ready",
    "/tasks?since=1m",
    "/tasks?error=never",
    "/tasks?payload=never",
    "/tasks?payload=17171",
    "/tasks?over=7",
    "/tasks?state=pending&error=never&order=oldest",
    "/failed",
    "/failed?queue=broken",
    "/queues",
    "/queues/bulk",
    "/workers",
    "/audit",
    "/tasks/all?state=failed&action=retry",
    "/tasks/all?state=failed&error=user&action=retry",
];

/// What all threads of this process have used of the cores.
fn used() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap().split(' ').collect();
    // Hundredths of a second, of user and system.
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

async fn took(site: &Site, path: &str) -> (Duration, String) {
    let mut times = Vec::new();
    let mut text = String::new();
    for _ in 0..5 {
        let began = Instant::now();
        let answer = site.raw(&request("GET", path, &[("accept", "text/html")], "")).await;
        times.push(began.elapsed());
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        text = answer.text;
    }
    times.sort();
    (times[2], text)
}

async fn pages(mill: Mill) {
    let began = Instant::now();
    seed(&mill).await;
    eprintln!("seeded in {:?}", began.elapsed());
    let site = Site::over(mill).await;
    let mut slow = Vec::new();
    for path in PAGES {
        let (took, text) = took(&site, path).await;
        let rows = text.matches("<tr data-row=").count();
        eprintln!("{:>6.1} ms {rows:>4} rows  {path}", took.as_secs_f64() * 1e3);
        if took >= Duration::from_millis(100) {
            slow.push((path, took));
        }
    }
    assert_eq!(slow, [], "over 100 ms");
    // What is few among a million is found whole, at once.
    for (path, rows) in [
        ("/tasks?queue=small&limit=500", 300),
        ("/tasks?queue=bulk", 50),
        ("/tasks?queue=bulk&order=oldest", 50),
        ("/tasks?queue=bulk&state=ready", 50),
        ("/tasks?queue=other&order=oldest", 50),
        ("/tasks?group=rare", 40),
        ("/tasks?source=shop-7", 40),
        ("/tasks?state=delayed&queue=later&limit=500", 500),
        ("/tasks?key=k7", 2),
    ] {
        let text = took(&site, path).await.1;
        assert_eq!(text.matches("<tr data-row=").count(), rows, "{path}");
    }
    // What no index leads to is looked for a while, and it is said how far.
    let mut path = "/tasks?error=never".to_owned();
    let mut looks = 0;
    loop {
        let text = took(&site, &path).await.1;
        let Some(next) = text.split("rel=\"next\"").next().filter(|part| part.len() < text.len())
        else {
            assert!(text.contains("No task matches"), "{text}");
            break;
        };
        assert!(text.contains("of 1,000,000 tasks, and stopped"), "{text}");
        let next = next.rsplit("href=\"").next().unwrap().split('"').next().unwrap();
        path = next.replace("&amp;", "&").replace("./", "/");
        looks += 1;
        assert!(looks < 200, "{path}");
    }
    eprintln!("an error that nothing has was looked for on {looks} pages");
    // An open overview asks again every two seconds.
    let (began, before) = (Instant::now(), used());
    while began.elapsed() < Duration::from_secs(60) {
        let answer = site.raw(&request("GET", "/", &[("hx-request", "true")], "")).await;
        assert_eq!(answer.status, 200);
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let cost = (used() - before).as_secs_f64() / began.elapsed().as_secs_f64();
    eprintln!("an open overview costs {:.2} % of a core", cost * 100.0);
    assert!(cost < 0.03, "{cost}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: puts a million tasks"]
async fn long_pages_beside_a_million_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("million.db").display());
    pages(Mill::open(&url).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: puts a million tasks"]
async fn long_pages_beside_a_million_on_postgres() {
    let server = gristmill_pgserver::Server::shared().unwrap();
    let database = server.database("million", |_| Ok(())).unwrap();
    pages(Mill::open(&database.url()).await.unwrap()).await;
}

//! What strangers send to bring a service down, or in: depth, extremes, names without end,
//! and guesses.

use std::time::{Duration, Instant};

use gristmill_server::Scope;

use crate::client::{Site, read, request};

/// The service answers, and nothing was stored.
async fn is_well(site: &Site) {
    let stats = site.get("/v1/stats").await.json();
    assert_eq!(stats[0]["total"], 0, "{stats}");
}

#[tokio::test]
async fn depth_without_end_harms_nobody() {
    let site = Site::with(&["q"]).await;
    let deep = |open: &str, shut: &str| open.repeat(100_000) + "1" + &shut.repeat(100_000);
    let (list, object) = (deep("[", "]"), deep("{\"a\":", "}"));
    for body in [&list, &object] {
        for path in ["/v1/queues/q/tasks", "/v1/claims", "/v1/settlements", "/v1/port/put"] {
            let refused = site.post(path, body).await;
            assert!((400..500).contains(&refused.status), "{path}: {refused:?}");
        }
    }
    is_well(&site).await;
    // As a payload it is kept as it was given. Whoever gets it can read the answer, and the
    // other tasks in it.
    for payload in [&list, &object, "[[1]]"] {
        let put = site.post("/v1/queues/q/tasks", &format!("{{\"payload\":{payload}}}")).await;
        assert_eq!(put.status, 201, "{put:?}");
    }
    let claim = site.post("/v1/claims", r#"{"queues":["q"],"worker":"w","max":3}"#).await.json();
    let tasks = claim["tasks"].as_array().unwrap();
    assert!(tasks[0]["payload_base64"].is_string() && tasks[1]["payload_base64"].is_string());
    assert_eq!(tasks[2]["payload"], serde_json::json!([[1]]));
    assert_eq!(site.get("/v1/tasks").await.json()["tasks"].as_array().unwrap().len(), 3);
}

/// What is said to be compressed is not unpacked, so it cannot grow.
#[tokio::test]
async fn a_body_that_would_grow_is_not_unpacked() {
    let site = Site::with(&["q"]).await;
    let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
    for path in ["/v1/queues/q/tasks", "/v1/port/put"] {
        let refused = site.send("POST", path, &headers, "\u{1f}\u{8b}rubbish").await;
        assert_eq!(refused.status, 400, "{path}: {refused:?}");
    }
    is_well(&site).await;
}

#[tokio::test]
async fn numbers_beyond_all_bounds_are_refused() {
    let site = Site::with(&["q"]).await;
    let numbers = ["0", "-1", "1e9", "99999999999999999999999999", "NaN", "", "1.5", "0x10"];
    for number in numbers {
        for path in ["/v1/tasks?limit=", "/v1/audit?limit=", "/v1/tasks?cursor="] {
            let refused = site.get(&format!("{path}{number}")).await;
            assert_eq!(refused.status, 422, "{path}{number}: {refused:?}");
        }
    }
    for span in ["-1s", "9999999999999999999s", "1000000h", "s", "NaN"] {
        for path in ["/v1/minutes?queue=q&back=", "/v1/tasks/1?wait="] {
            let refused = site.get(&format!("{path}{span}")).await;
            assert_eq!(refused.status, 422, "{path}{span}: {refused:?}");
        }
        let claim = format!(r#"{{"queues":["q"],"worker":"w","lease":"{span}"}}"#);
        assert_eq!(site.post("/v1/claims", &claim).await.status, 422, "{claim}");
    }
    for max in ["0", "-1", "1001", "2e3", "99999999999999999999"] {
        let claim = format!(r#"{{"queues":["q"],"worker":"w","max":{max}}}"#);
        assert_eq!(site.post("/v1/claims", &claim).await.status, 422, "{claim}");
    }
    is_well(&site).await;
}

/// Names that somebody makes up become neither queues nor series.
#[tokio::test]
async fn names_that_are_made_up_leave_nothing_behind() {
    let site = Site::with(&["q"]).await;
    let mut before = 0;
    for n in 0..500 {
        if n == 10 {
            before = site.get("/metrics").await.text.lines().count();
        }
        let put = site.post(&format!("/v1/queues/made-up-{n}/tasks"), r#"{"payload":1}"#).await;
        assert_eq!(put.status, 404, "{put:?}");
        let claim = format!(r#"{{"queues":["q"],"worker":"made-up-{n}"}}"#);
        assert_eq!(site.post("/v1/claims", &claim).await.status, 200);
        site.get(&format!("/v1/made-up-{n}")).await;
    }
    let metrics = site.get("/metrics").await.text;
    assert!(!metrics.contains("made-up"), "{metrics}");
    assert_eq!(metrics.lines().count(), before, "{metrics}");
    assert_eq!(site.get("/v1/queues").await.json().as_array().unwrap().len(), 1);
    is_well(&site).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: ten thousand connections"]
async fn long_ten_thousand_guesses_let_nobody_in_and_slow_nobody_else() {
    let site = Site::with(&["q"]).await;
    let honest = site.token("honest", &[Scope::Read], &[]).await;
    // The first look knows of it.
    while site.by(&honest, "GET", "/v1", "").await.status != 200 {
        tokio::task::yield_now().await;
    }
    let (address, begun) = (site.address, Instant::now());
    let guesses = (0..4_u32).map(|guesser| {
        tokio::spawn(async move {
            let mut told = 0;
            for n in 0..2_500_u32 {
                let bearer =
                    format!("Bearer gristmill_{:064x}", u64::from(guesser) << 32 | u64::from(n));
                let stream = tokio::net::TcpStream::connect(address).await.unwrap();
                let mut stream = tokio::io::BufReader::new(stream);
                let text = request("GET", "/v1/stats", &[("authorization", &bearer)], "");
                tokio::io::AsyncWriteExt::write_all(&mut stream, &text).await.unwrap();
                match read(&mut stream).await.status {
                    401 => told += 1,
                    429 => {}
                    other => panic!("a guess was answered {other}"),
                }
            }
            told
        })
    });
    let guesses: Vec<_> = guesses.collect();
    let mut took = Vec::new();
    while !guesses.iter().all(tokio::task::JoinHandle::is_finished) {
        let asked = Instant::now();
        assert_eq!(site.by(&honest, "GET", "/v1/stats", "").await.status, 200);
        took.push(asked.elapsed());
    }
    let mut told = 0;
    for guess in guesses {
        told += guess.await.unwrap();
    }
    // Ten at once, and then one a second.
    let most = 11 + begun.elapsed().as_secs();
    assert!(told <= most, "{told} of 10,000 were told, and {most} may be");
    took.sort_unstable();
    let p99 = took[took.len() * 99 / 100];
    println!("{} honest answers, p99 {p99:?}, {told} guesses told", took.len());
    assert!(took.len() >= 50 && p99 < Duration::from_secs(1), "{p99:?} of {}", took.len());
}

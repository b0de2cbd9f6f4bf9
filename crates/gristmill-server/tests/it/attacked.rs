//! What strangers send to bring a service down, or in: depth, extremes, names without end,
//! and guesses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gristmill_server::Scope;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

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

/// Numbers without a pattern, the same ones each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % most.max(1)
    }
}

/// A request with a few bytes turned, taken out, said twice, or put in.
fn changed(request: &[u8], dice: &mut Dice) -> Vec<u8> {
    const ODD: [&[u8]; 12] = [
        b"\0",
        b"\r\n",
        b"\r\n\r\n",
        b"\xff\xfe",
        b"%00",
        b"../",
        b"-1",
        b"\"",
        b"{",
        b"]",
        b"99999999999999999999",
        b"transfer-encoding: chunked\r\n",
    ];
    let mut text = request.to_vec();
    for _ in 0..=dice.below(3) {
        let from = dice.below(text.len());
        let to = (from + 1 + dice.below(8)).min(text.len());
        match dice.below(5) {
            0 => text[from] ^= 1 << dice.below(8),
            1 => drop(text.drain(from..to)),
            2 => text.splice(from..from, text[from..to].to_vec()).for_each(drop),
            3 => text.splice(from..from, ODD[dice.below(ODD.len())].to_vec()).for_each(drop),
            _ => text.truncate(from.max(1)),
        }
        if text.is_empty() {
            return text;
        }
    }
    text
}

/// Whatever is sent, the connection is answered or closed, and nothing panics behind it.
#[tokio::test]
async fn requests_that_are_changed_at_random_harm_nobody() {
    let panics = Arc::new(AtomicUsize::new(0));
    let (counted, before) = (panics.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        let ours = panic.location().is_some_and(|at| at.file().contains("/src/"));
        counted.fetch_add(usize::from(ours), Ordering::SeqCst);
        before(panic);
    }));
    let site = Site::with(&["q"]).await;
    let json = [("content-type", "application/json")];
    let lines = [("content-type", "application/x-ndjson")];
    let token = "00112233445566778899aabbccddeeff";
    let requests = [
        request("POST", "/v1/queues/q/tasks", &json, r#"{"payload":{"a":[1]},"delay":"5s"}"#),
        request(
            "POST",
            "/v1/queues/q/tasks",
            &lines,
            "{\"payload\":1}\n{\"payload_base64\":\"AA==\"}\n",
        ),
        request(
            "POST",
            "/v1/claims",
            &json,
            &format!(r#"{{"queues":["q"],"worker":"w","max":2,"token":"{token}"}}"#),
        ),
        request(
            "POST",
            "/v1/settlements",
            &json,
            &format!(
                r#"[{{"id":"1","token":"{token}","outcome":"retry","after":"5s","error":"x"}}]"#
            ),
        ),
        request(
            "POST",
            "/v1/tasks/retry",
            &json,
            r#"{"filter":{"queue":"q","error":"x"},"by":"ada"}"#,
        ),
        request(
            "PATCH",
            "/v1/queues/q",
            &json,
            r#"{"settings":{"max_attempts":3,"backoff":{"base":"1s"}}}"#,
        ),
        request(
            "PUT",
            "/v1/schedules/s",
            &json,
            r#"{"queue":"q","cron":"0 7 * * *","zone":"UTC","payload":1}"#,
        ),
        request("POST", "/v1/port/put", &json, r#"{"queue":"q","tasks":[{"payload":"AA=="}]}"#),
        request("GET", "/v1/tasks?queue=q&state=failed&since=1h&cursor=1&limit=10", &[], ""),
        request("GET", "/v1/minutes?queue=q&back=1h", &[("authorization", "Bearer x")], ""),
        request(
            "GET",
            "/failed?queue=q&error=%3Cb%3E",
            &[("accept", "text/html"), ("cookie", "a=b")],
            "",
        ),
    ];
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    for turn in 0..1_500 {
        let text = changed(&requests[dice.below(requests.len())], &mut dice);
        let told = || format!("request {turn}: {:?}", String::from_utf8_lossy(&text));
        let asking = async {
            let mut stream = site.connect().await;
            // It may be closed while it is still being sent.
            let _ = stream.write_all(&text).await;
            let _ = stream.shutdown().await;
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            answer
        };
        let answer = tokio::time::timeout(Duration::from_secs(30), asking).await;
        let answer = answer.unwrap_or_else(|_| panic!("no end of {}", told()));
        assert!(!answer.starts_with(b"HTTP/1.1 500"), "{}", told());
        assert_eq!(panics.load(Ordering::SeqCst), 0, "{}", told());
    }
    assert_eq!(site.get("/livez").await.status, 200);
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

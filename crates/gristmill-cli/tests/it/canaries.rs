//! Words that nobody may be told: planted where payloads and secrets stand, and looked for
//! in everything that a service says. And words that would be commands if anybody took them
//! for some.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::place::{Place, Running, eventually};

const PAYLOAD: &str = "canary-in-a-payload";
const SECRET: &str = "whsec_Y2FuYXJ5LWluLWEtc2VjcmV0LWtleS1vZi1hLWhvb2s=";
const KEY: &str = "canary-in-a-url";

/// Two queues: a program that looks around it and fails, and a URL where nobody listens.
const SERVED: &str = "
queues:
  - name: programs
    exec: 'cat > got; env > env; cat /proc/*/cmdline 2> none | tr \"\\0\" \"\\n\" | grep -v grep > lines; exit 9'
    settings: {max_attempts: 1}
  - name: urls
    http: http://127.0.0.1:9/tasks?key=canary-in-a-url
    secret: whsec_Y2FuYXJ5LWluLWEtc2VjcmV0LWtleS1vZi1hLWhvb2s=
    settings: {max_attempts: 1}
";

/// One request with a token; all of its answer.
fn ask(address: &str, token: &str, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn payloads_tokens_and_secrets_are_told_nowhere() {
    let place = Place::new();
    place.write("gristmill.yaml", SERVED);
    let token = place.ok(&["token", "create", "ops", "--scope", "admin"]).trim().to_owned();
    // What it logs goes to a file: nobody reads a pipe beside the test.
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec \"$0\" up 2> log", env!("CARGO_BIN_EXE_gristmill")])
        .current_dir(place.path(""))
        .env("GRISTMILL_LISTEN", "127.0.0.1:0")
        .env("GRISTMILL_LOG", "trace")
        .env_remove("GRISTMILL_STORE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut up = Running::of(&mut command);
    let seen = Running::until(&mut up.stdout, "  http ");
    let at = seen.last().unwrap().split("http://").nth(1).unwrap();
    let address = at.split(' ').next().unwrap().to_owned();
    let shown = Running::until(&mut up.stdout, "Stop with Ctrl-C").join("\n");

    let mut told = vec![("what up shows", shown)];
    let task = format!("{{\"payload\":\"{PAYLOAD}\"}}");
    for queue in ["programs", "urls"] {
        let put = ask(&address, &token, "POST", &format!("/v1/queues/{queue}/tasks"), &task);
        assert!(put.starts_with("HTTP/1.1 201"), "{put}");
        told.push(("the answer to a put", put));
        eventually("it failed", || place.stats(queue)["failed"] == 1);
    }
    assert_eq!(std::fs::read_to_string(place.path("got")).unwrap(), format!("\"{PAYLOAD}\""));
    // Mistakes that hold the words, also where a token should stand.
    let wrong = format!("{{\"payload\":\"{PAYLOAD}\",\"dealy\":1}}");
    told.push(("a mistake", ask(&address, &token, "POST", "/v1/queues/programs/tasks", &wrong)));
    let other = format!("gristmill_{}", "5e".repeat(32));
    told.push(("a refusal", ask(&address, &other, "GET", "/v1/stats", "")));
    let by = r#"{"filter":{"queue":"programs"},"by":"ada"}"#;
    told.push(("an operation", ask(&address, &token, "POST", "/v1/tasks/retry", by)));
    for path in [
        "/metrics",
        "/v1",
        "/v1/audit",
        "/v1/stats",
        "/v1/queues",
        "/v1/workers",
        "/v1/operations",
        "/v1/minutes?queue=urls",
    ] {
        told.push((path, ask(&address, &token, "GET", path, "")));
    }
    told.push(("the list of tokens", place.ok(&["token", "list"])));
    told.push(("what failed", place.ok(&["failed"])));
    told.push(("the configuration", place.ok(&["config", "show"])));
    up.signal(Signal::TERM);
    let (code, rest, _) = up.end();
    assert_eq!(code, 0, "{rest}");
    told.push(("the rest", rest));
    for (what, file) in
        [("the log", "log"), ("command lines", "lines"), ("a program's environment", "env")]
    {
        told.push((what, std::fs::read_to_string(place.path(file)).unwrap()));
    }
    let log = &told.iter().find(|(what, _)| *what == "the log").unwrap().1;
    assert!(log.contains("INFO"), "it says little: {log}");
    assert!(told.iter().any(|(_, text)| text.contains("cat > got")), "no command line was seen");
    let digits = token.strip_prefix("gristmill_").unwrap();
    for (what, text) in &told {
        for word in [PAYLOAD, SECRET, KEY, digits, &other] {
            assert!(!text.contains(word), "{word} is told in {what}:\n{text}");
        }
    }
}

/// None is built in: nothing in the program has the form of a token.
#[test]
fn no_token_is_in_the_program() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_gristmill")).unwrap();
    let program = String::from_utf8_lossy(&program);
    let found = program.split("gristmill_").skip(1).filter(|rest| {
        let digits = rest.as_bytes().iter().take(64);
        digits.clone().count() == 64 && digits.clone().all(u8::is_ascii_hexdigit)
    });
    assert_eq!(found.count(), 0);
}

#[test]
fn what_a_task_says_is_never_a_command() {
    let place = Place::with(&[&["q"]]);
    let words = [
        "$(touch hacked)",
        "`touch hacked`",
        "; touch hacked",
        "& touch hacked &",
        "| touch hacked",
        "'; touch hacked; '",
        "\"; touch hacked; \"",
        "a\ntouch hacked",
        "${IFS}$(touch${IFS}hacked)",
        "-rf",
        "--help",
        "--exec=touch hacked",
    ];
    for word in words {
        let said: Vec<String> =
            ["key", "group", "source"].iter().map(|name| format!("--{name}={word}")).collect();
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        place.ok(&[&["put", "q", "--encoding", "raw"], &said[..], &["--", word]].concat());
    }
    let handler = "cat >> seen; for said in \"$GRISTMILL_TASK_KEY\" \"$GRISTMILL_TASK_GROUP\" \
                   \"$GRISTMILL_TASK_SOURCE\"; do printf '%s' \"$said\" >> seen; done";
    place.ok(&["work", "q", "--drain", "--exec", handler]);
    let seen = std::fs::read_to_string(place.path("seen")).unwrap();
    assert_eq!(seen, words.map(|word| word.repeat(4)).concat());
    assert!(!place.path("hacked").exists());
}

//! HTTP with a certificate from the configuration, and a client that trusts it.

use std::path::Path;
use std::process::Command;

use crate::place::{Place, Running};

const ASKS: &str = r#"
import os
from gristmill import Client, GristmillError
client = Client(patience=0.1)
client.declare("emails")
assert client.put("emails", {"to": "ada"}).enqueued
del os.environ["GRISTMILL_CA"]
try:
    Client(patience=0.1).stats()
    raise SystemExit("it was trusted")
except GristmillError as error:
    assert "CERTIFICATE_VERIFY_FAILED" in str(error), error
"#;

#[test]
fn the_service_encrypts_and_its_clients_look_who_it_is() {
    let place = Place::new();
    let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj \
                 /CN=localhost -addext subjectAltName=DNS:localhost -keyout s.key -out s.crt";
    let made = Command::new("openssl").args(words.split(' ')).current_dir(place.path("")).output();
    let (Ok(made), Ok(_)) = (made, Command::new("python3").arg("--version").output()) else {
        println!("NOT RUN: openssl or python3 is missing");
        return;
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    place.write("gristmill.yaml", "tls: {cert: s.crt, key: s.key}\nqueues: [{name: a}]\n");
    let mut command = place.command(&["up"]);
    let mut up = Running::of(command.env("GRISTMILL_LISTEN", "127.0.0.1:0"));
    let seen = Running::until(&mut up.stdout, "  http ");
    let port = seen.last().unwrap().split("https://127.0.0.1:").nth(1).unwrap();
    let url = format!("https://localhost:{}", port.split(' ').next().unwrap());
    Running::until(&mut up.stdout, "Stop with Ctrl-C");
    let output = Command::new("python3")
        .args(["-c", ASKS])
        .env("GRISTMILL_URL", url)
        .env("GRISTMILL_CA", place.path("s.crt"))
        .env_remove("SSL_CERT_FILE")
        .env("PYTHONPATH", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_certificate_that_cannot_be_used_is_said_before_anything_begins() {
    let place = Place::new();
    place.write("bad", "nonsense");
    for (tls, part) in [
        ("{cert: none.crt, key: bad}", "there is no file"),
        ("{cert: bad}", "tls needs a field 'key'"),
        ("{cert: bad, key: bad, when: now}", "tls has no field 'when'"),
        ("{cert: bad, key: bad}", "no certificate in"),
    ] {
        place.write("gristmill.yaml", format!("tls: {tls}\nqueues: [{{name: a}}]\n"));
        let answer = place.run(&["serve"]);
        assert!(answer.code == 2 && answer.stderr.contains(part), "{tls}: {answer:?}");
    }
    for (keep, part) in [
        ("{audit: 1h}", "audit: from 1d"),
        ("{audit: x}", "not a duration"),
        ("{operations: 1h}", "operations: from 1d"),
        ("{minutes: 1h}", "minutes: from 1d to 90d"),
        ("{minutes: 91d}", "minutes: from 1d to 90d"),
    ] {
        place.write("gristmill.yaml", format!("keep: {keep}\nqueues: [{{name: a}}]\n"));
        let answer = place.run(&["config", "check"]);
        assert!(answer.code == 2 && answer.stderr.contains(part), "{keep}: {answer:?}");
    }
    assert!(!place.path("gristmill.db").exists());
}

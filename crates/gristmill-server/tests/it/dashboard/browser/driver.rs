//! A browser without a window that does what a test says, over WebDriver.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use gristmill_contract::base64;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::client::{Site, read, request};

/// A driver with one window, which ends with it.
pub(super) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    profile: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver takes its browser along only when it is asked to end.
        let _ = Command::new("kill").arg(self.driver.id().to_string()).status();
        let _ = self.driver.wait();
        let _ = self.profile.path();
    }
}

/// Where a program is, if it is here.
fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let all = names.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    all.into_iter().find(|place| place.is_file())
}

impl Browser {
    /// Nothing where there is no browser.
    pub(super) async fn open(width: u32, height: u32) -> Option<Self> {
        let (Some(driver), Some(browser)) =
            (program(&["chromedriver"]), program(&["chromium", "chromium-browser"]))
        else {
            eprintln!("NOT RUN: chromium and chromium-driver are missing");
            return None;
        };
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let profile = tempfile::tempdir().unwrap();
        // A test that is killed cannot end what it started: the driver is killed with it,
        // and with the driver its browser.
        let driver = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(driver)
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let start = profile.path().join("browser");
        let text =
            format!("#!/bin/sh\nexec setpriv --pdeathsig KILL '{}' \"$@\"\n", browser.display());
        fs::write(&start, text).unwrap();
        fs::set_permissions(&start, fs::Permissions::from_mode(0o755)).unwrap();
        let mut opened = Browser { driver, port, session: String::new(), profile };
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            assert!(opened.driver.try_wait().unwrap().is_none(), "the driver ended");
            tokio::task::yield_now().await;
        }
        let mut args: Vec<String> = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
        ]
        .map(str::to_owned)
        .into();
        args.push(format!("--user-data-dir={}", opened.profile.path().display()));
        args.push(format!("--window-size={width},{height}"));
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:loggingPrefs": { "browser": "ALL" },
            "goog:chromeOptions": { "binary": start, "args": args },
            // A dialog that nobody expects is an error of the next command.
            "unhandledPromptBehavior": "ignore",
        } } });
        let session = opened.ask("POST", "/session", &wanted).await;
        opened.session = format!("/session/{}", session["sessionId"].as_str().unwrap());
        Some(opened)
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let headers = [("content-type", "application/json"), ("connection", "close")];
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        stream.write_all(&request(method, path, &headers, &body)).await.unwrap();
        let answer = read(&mut BufReader::new(stream)).await;
        let value = answer.json()["value"].clone();
        assert_eq!(answer.status, 200, "{method} {path}: {value}");
        value
    }

    pub(super) async fn told(&self, what: &str, body: Value) -> Value {
        self.ask("POST", &format!("{}{what}", self.session), &body).await
    }

    pub(super) async fn go(&self, site: &Site, path: &str) {
        let url = format!("http://{}{path}", site.address);
        self.told("/url", json!({ "url": url })).await;
    }

    pub(super) async fn run(&self, script: &str) -> Value {
        self.told("/execute/sync", json!({ "script": script, "args": [] })).await
    }

    /// Returns once a script answers with true.
    pub(super) async fn until(&self, script: &str) {
        let asked = format!("return Boolean({script})");
        let waiting = async {
            while self.run(&asked).await != json!(true) {
                tokio::task::yield_now().await;
            }
        };
        if tokio::time::timeout(Duration::from_secs(30), waiting).await.is_err() {
            let text = self.run("return location.href + '\n' + document.body.innerText").await;
            panic!("never true: {script}\n{}", text.as_str().unwrap_or_default());
        }
    }

    pub(super) async fn press(&self, keys: &str) {
        let keys: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [
                    json!({ "type": "keyDown", "value": key }),
                    json!({ "type": "keyUp", "value": key }),
                ]
            })
            .collect();
        let actions = json!([{ "type": "key", "id": "keys", "actions": keys }]);
        self.told("/actions", json!({ "actions": actions })).await;
    }

    /// As if the system were dark or light.
    pub(super) async fn look(&self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": features })).await;
    }

    pub(super) async fn devtools(&self, command: &str, params: Value) -> Value {
        self.told("/goog/cdp/execute", json!({ "cmd": command, "params": params })).await
    }

    /// Keeps a picture, where somebody wants one.
    pub(super) async fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("GRISTMILL_SHOTS") else { return };
        let picture = self.ask("GET", &format!("{}/screenshot", self.session), &Value::Null).await;
        let bytes = base64::decode(picture.as_str().unwrap()).unwrap();
        fs::create_dir_all(&folder).unwrap();
        fs::write(Path::new(&folder).join(format!("{name}.png")), bytes).unwrap();
    }

    /// What the browser complained of: scripts that failed or were forbidden.
    pub(super) async fn complaints(&self) -> Vec<String> {
        let said = self.told("/se/log", json!({ "type": "browser" })).await;
        let said = said.as_array().unwrap().iter();
        let said = said.map(|line| line["message"].as_str().unwrap_or_default().to_owned());
        // Pages that say that something is not there are asked for on purpose.
        said.filter(|line| !line.contains("Failed to load resource")).collect()
    }
}

//! `schedules`, and what `up` does with those of the configuration.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use gristmill::Mill;
use gristmill::schedule::Scheduler;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Place, Running, eventually};

const CONFIG: &str = "
queues:
  - name: beats
    exec: 'cat; echo'
schedules:
  - {name: tick, queue: beats, every: 1s, payload: {say: tick}}
  - {name: morning, queue: beats, cron: 0 7 * * *, zone: Europe/Athens, payload: {say: hello}}
";

fn schedule(place: &Place, name: &str) -> Value {
    let all = place.json(&["schedules"]);
    all.as_array().unwrap().iter().find(|s| s["schedule"] == name).cloned().unwrap_or_default()
}

#[test]
fn up_fires_them_and_operators_pause_and_fire() {
    let place = Place::new();
    place.write("gristmill.yaml", CONFIG);
    let mut up = place.start(&["up"]);
    let said = Running::until(&mut up.stdout, "Stop with Ctrl-C").join("\n");
    assert!(said.contains("schedules  tick (every 1s), morning (0 7 * * *)"), "{said}");
    Running::until(&mut up.stdout, r#"{"say":"tick"}"#);
    Running::until(&mut up.stdout, r#"{"say":"tick"}"#);
    assert!(schedule(&place, "tick")["last_fire"].is_string());
    let morning = schedule(&place, "morning");
    assert_eq!((&morning["last_fire"], &morning["cron"]), (&Value::Null, &"0 7 * * *".into()));
    assert!(morning["next_fire"].as_str().unwrap().ends_with(":00:00Z"), "{morning}");

    assert!(place.ok(&["schedules", "pause", "tick", "--by", "ada"]).contains("is paused until"));
    let tick = schedule(&place, "tick");
    assert_eq!((&tick["paused"], &tick["paused_by"]), (&true.into(), &"ada".into()));
    assert_eq!(tick["next_fire"], Value::Null);
    let table = place.ok(&["schedules"]);
    for part in ["schedule", "next fire", "every 1s", "Europe/Athens", "beats", "by ada"] {
        assert!(table.contains(part), "{table}");
    }
    assert!(place.ok(&["schedules", "fire", "morning"]).starts_with("morning fired: task "));
    Running::until(&mut up.stdout, r#"{"say":"hello"}"#);
    assert!(place.ok(&["schedules", "resume", "tick"]).contains("tick goes on"));
    let before = schedule(&place, "tick")["last_fire"].clone();
    eventually("it goes on", || schedule(&place, "tick")["last_fire"] != before);
    up.signal(Signal::TERM);
    let (code, _, stderr) = up.end();
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn what_left_the_file_stays_and_is_said() {
    let place = Place::new();
    place.write("gristmill.yaml", CONFIG);
    assert!(!place.up_and_stop().contains("schedule "));
    let shorter: Vec<&str> = CONFIG.lines().filter(|line| !line.contains("morning")).collect();
    place.write("gristmill.yaml", shorter.join("\n").replace("every: 1s", "every: 5m"));
    let said = place.up_and_stop();
    assert!(said.contains("schedule morning is not in this file and stays"), "{said}");
    assert!(said.contains("schedule tick: now as in the configuration"), "{said}");
    assert_eq!(schedule(&place, "tick")["every_ms"], 300_000);
    assert!(place.ok(&["schedules", "remove", "morning"]).contains("its tasks stay"));
    assert_eq!(place.json(&["schedules"]).as_array().unwrap().len(), 1);
    assert!(!place.up_and_stop().contains("morning"));
}

#[test]
fn none_is_said_too() {
    let place = Place::with(&[&["emails"]]);
    assert!(place.ok(&["schedules"]).contains("no schedules yet"));
    assert_eq!(place.json(&["schedules", "list"]), serde_json::json!([]));
}

/// The finder's code is in a program; the command line asks for it.
#[test]
fn a_finder_is_asked_for_and_run_by_the_program_that_has_it() {
    let place = Place::with(&[&["emails"]]);
    let url = format!("sqlite://{}", place.path("gristmill.db").display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mill = Mill::open(&url).await.unwrap();
        let found = Arc::new(AtomicU32::new(0));
        let counted = found.clone();
        let find =
            mill.schedule("due").every(Duration::from_secs(86_400)).finder("emails", move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
                async { Ok::<(), String>(()) }
            });
        let mut scheduler = Scheduler::new(&mill).schedule(find);
        scheduler.run_due().await.unwrap();

        let said = place.ok(&["schedules", "fire", "due"]);
        assert!(said.contains("the program with its code runs within two seconds"), "{said}");
        let answer = place.json(&["schedules", "fire", "due"]);
        assert_eq!((&answer["fired"], &answer["asked"]), (&false.into(), &true.into()));
        assert!(schedule(&place, "due")["asked"].is_string());
        assert!(place.ok(&["schedules"]).contains("asked for"));
        assert_eq!(found.load(Ordering::Relaxed), 0);

        scheduler.run_due().await.unwrap();
        scheduler.run_due().await.unwrap();
        assert_eq!(found.load(Ordering::Relaxed), 1, "asked for twice, run once");
        assert_eq!(schedule(&place, "due")["asked"], Value::Null);
        mill.close().await.unwrap();
    });
}

#[test]
fn a_schedule_is_added_in_one_line() {
    let place = Place::with(&[&["q"]]);
    let add = |words: &[&str]| {
        let words = [&["schedules", "add"][..], words].concat();
        let output = place.command(&words).env("TZ", "Asia/Tokyo").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let said = add(&["morning", "q", "{\"to\":1}", "--cron", "0 7 * * *"]);
    assert!(said.starts_with("schedule morning added: 0 7 * * * in Asia/Tokyo, next "), "{said}");
    assert!(said.ends_with(" 07:00 JST"), "{said}");
    let again = ["morning", "q", "{\"to\":1}", "--cron", "0 7 * * *"];
    assert!(add(&again).starts_with("schedule morning stood already"));
    let zone = ["morning", "q", "2", "--cron", "0 7 * * *", "--zone", "UTC", "--overlap", "skip"];
    assert!(add(&zone).starts_with("schedule morning changed: 0 7 * * * in UTC"));
    assert!(add(&["tick", "q", "x", "--every", "10m", "--missed", "all"]).contains("every 10m"));
    let schedules = place.json(&["schedules"]);
    assert_eq!((&schedules[0]["overlap"], &schedules[0]["zone"]), (&json!("skip"), &json!("UTC")));
    assert_eq!(
        (&schedules[1]["every_ms"], &schedules[1]["missed"]),
        (&json!(600_000), &json!("all"))
    );
    place.ok(&["schedules", "fire", "morning"]);
    assert_eq!(place.json(&["list"])[0]["payload"], 2);
    place.ok(&["schedules", "remove", "morning"]);
    assert_eq!(place.json(&["schedules"]).as_array().unwrap().len(), 1);
}

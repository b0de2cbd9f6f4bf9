//! The configuration: the promised names and defaults, and what is refused.

use super::*;

/// The properties and defaults that the application promises.
const PROMISED: &str = "
    application.jobs.feed-ingestion.enabled=true
    application.jobs.feed-ingestion.queue-capacity=1000
    application.jobs.feed-ingestion.worker-count=4
    application.jobs.feed-scheduling.interval=60000
    application.jobs.feed-ingestion.batch-size=100
    application.jobs.processing.enabled=true
    application.jobs.processing.queue-capacity=1000
    application.jobs.processing.worker-count=4
    application.jobs.processing.interval=60000
    application.jobs.processing.batch-size=50
    application.jobs.briefing-execution.enabled=true
    application.jobs.briefing-execution.queue-capacity=100
    application.jobs.briefing-execution.worker-count=2
    application.jobs.briefing-execution.interval=60000
    application.jobs.feed-recovery.interval=300000
    application.jobs.feed-ingestion.stuck-threshold-minutes=10
";

fn defaults() -> Config {
    Config::read(None, []).expect("the defaults are sound")
}

fn yaml(text: &str) -> Result<Config, String> {
    Config::read(Some(("deck.yaml", text)), []).map_err(|mistakes| mistakes.to_string())
}

#[test]
fn every_property_has_its_promised_default() {
    for line in PROMISED.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once('=').expect("a property");
        let known = PROPERTIES.iter().find(|property| property.name == name);
        assert_eq!(known.map(|property| property.default), Some(value), "{name}");
    }
    let config = defaults();
    assert_eq!(Config::read(Some(("deck.properties", PROMISED)), []), Ok(config.clone()));
    let minute = Duration::from_secs(60);
    let serving = |capacity, workers, batch| Serving {
        enabled: true,
        queue_capacity: capacity,
        worker_count: workers,
        interval: minute,
        batch_size: batch,
    };
    assert_eq!(config.fetching, serving(1_000, 4, 100));
    assert_eq!(config.processing, serving(1_000, 4, 50));
    assert_eq!(config.briefings, serving(100, 2, usize::MAX));
    assert_eq!((config.recovery_interval, config.stuck_threshold), (5 * minute, 10 * minute));
    assert_eq!(config.stop_within, Duration::from_secs(30));
}

#[test]
fn each_property_changes_what_it_is_about() {
    let text = "
application:
  jobs:
    feed-ingestion: {enabled: false, queue-capacity: 1, worker-count: 2, batch-size: 3}
    feed-ingestion.stuck-threshold-minutes: 4
    feed-scheduling.interval: 5000
    feed-recovery: {interval: 6000}
    processing: {enabled: false, queue-capacity: 7, worker-count: 8, batch-size: 9, interval: 10000}
    briefing-execution: {enabled: false, queue-capacity: 11, worker-count: 12, interval: 13000}
  shutdown-timeout: 14
  database: fifteen.db
  queue: memory
  mail: {enabled: false, from: a@example.com}
  search: {enabled: true, url: \"http://search:16\", key: seventeen}
  status.listen: \"127.0.0.1:18\"
  tls.authorities: nineteen.pem
";
    let config = yaml(text).expect("a configuration");
    let serving = |queue_capacity, worker_count, batch_size, seconds| Serving {
        enabled: false,
        queue_capacity,
        worker_count,
        batch_size,
        interval: Duration::from_secs(seconds),
    };
    assert_eq!(config.fetching, serving(1, 2, 3, 5));
    assert_eq!(config.processing, serving(7, 8, 9, 10));
    assert_eq!(config.briefings, serving(11, 12, usize::MAX, 13));
    assert_eq!(config.stuck_threshold, Duration::from_secs(4 * 60));
    assert_eq!(config.recovery_interval, Duration::from_secs(6));
    assert_eq!(config.stop_within, Duration::from_millis(14));
    assert_eq!((config.database, config.queue), ("fifteen.db".into(), QueuePlace::Memory));
    assert_eq!((config.mail, config.mail_from.as_str()), (None, "a@example.com"));
    assert_eq!(config.search.as_deref(), Some("http://search:16"));
    assert_eq!(config.search_key.as_deref(), Some("seventeen"));
    assert_eq!(config.status, "127.0.0.1:18".parse().ok());
    assert_eq!(config.authorities, Some("nineteen.pem".into()));
}

#[test]
fn the_environment_wins_over_the_file() {
    let text = "application.jobs.processing.worker-count: 3\napplication.mail.port: 2525\n";
    let variables = [
        ("APPLICATION_JOBS_PROCESSING_WORKER_COUNT", "7"),
        ("APPLICATION_MAIL_HOST", "mail.example.com"),
        ("APPLICATION_OF_SOMEBODY_ELSE", "x"),
        ("PATH", "/bin"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config = Config::read(Some(("deck.yaml", text)), variables).expect("a configuration");
    assert_eq!(config.processing.worker_count, 7);
    let mail = config.mail.expect("mail is on");
    assert_eq!((mail.host.as_str(), mail.port), ("mail.example.com", 2525));
    assert_eq!((mail.encryption, mail.login), (Encryption::None, None));
}

#[test]
fn a_provider_is_spoken_to_with_a_login_and_never_in_the_clear() {
    let read = |more: &str| yaml(&format!("application.mail: {{user: ada, {more}}}"));
    let mail = "host: mail.example.com, port: 587, password: \"p: s\", encryption: starttls";
    let config = read(mail).expect("a configuration");
    let login = Login { user: "ada".to_owned(), password: "p: s".to_owned() };
    let shown = format!("{config:?}");
    assert!(!shown.contains("p: s"), "{shown}");
    let mail = config.mail.expect("mail is on");
    assert_eq!((mail.encryption, mail.login), (Encryption::StartTls, Some(login)));
    let tls = read("password: x, encryption: tls").expect("a configuration").mail;
    assert_eq!(tls.map(|mail| mail.encryption), Some(Encryption::Tls));
    assert!(read("password: x").is_ok(), "a server on this machine may be told in the clear");
    let told = read("password: x, host: mail.example.com").expect_err("in the clear");
    assert!(told.contains("would go over the network in the clear"), "{told}");
    let told = read("host: mail.example.com").expect_err("no password");
    assert!(told.contains("need each other"), "{told}");
    let told = yaml("application.mail.encryption: ssl").expect_err("no such encryption");
    assert!(told.contains("it must be none or starttls or tls"), "{told}");
}

#[test]
fn all_mistakes_are_told_with_their_places() {
    let text = "application:\n  jobs:\n    processing:\n      worker-count: 0\n      \
                interval: 10\n      size: 5\n      enabled: maybe\n  queue: redis\n  \
                mail: {from: nobody}\n";
    let variables =
        [("APPLICATION_JOBS_PROCESSING_BATCH", "x"), ("APPLICATION_MAIL_PORT", "70000")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mistakes = Config::read(Some(("deck.yaml", text)), variables).expect_err("mistakes");
    let told = mistakes.to_string();
    for expected in [
        "deck.yaml:4: application.jobs.processing.worker-count is '0': it must be a number from 1 to 256",
        "deck.yaml:5: application.jobs.processing.interval is '10': it must be a number from 1000",
        "deck.yaml:6: there is no property 'application.jobs.processing.size'",
        "deck.yaml:7: application.jobs.processing.enabled is 'maybe': it must be true or false",
        "deck.yaml:8: application.queue is 'redis': it must be database or memory",
        "deck.yaml:9: application.mail.from is 'nobody': 'nobody' is not a mail address",
        "APPLICATION_JOBS_PROCESSING_BATCH: there is no such property",
        "APPLICATION_MAIL_PORT: application.mail.port is '70000': it must be a number from 1 to 65535",
    ] {
        assert!(told.contains(expected), "{expected}\nis not in\n{told}");
    }
    assert_eq!(told.lines().count(), 8);
}

#[test]
fn a_property_in_the_wrong_place_is_shown_the_right_one() {
    let told = yaml("application.jobs.feed-ingestion.interval: 5000").expect_err("a mistake");
    assert!(told.contains("did you mean 'application.jobs.feed-scheduling.interval'?"), "{told}");
}

#[test]
fn what_is_no_configuration_is_told_with_its_line() {
    for (text, line) in [
        ("application:\n  queue: [", "deck.yaml:2"),
        ("application:\n  queue: memory\n  queue: memory\n", "deck.yaml:3"),
        ("application: [1, 2]\n", "deck.yaml:1"),
    ] {
        let told = yaml(text).expect_err(text);
        assert!(told.starts_with(line), "{told}");
    }
    let told = Config::read(Some(("a.properties", "# fine\nnonsense")), []).expect_err("a mistake");
    assert_eq!(told.to_string(), "a.properties:2: there is no '=' in it");
    let missing = Config::load(Some(Path::new("no/such.yaml")), []).expect_err("no file");
    assert!(missing.to_string().starts_with("no/such.yaml: "), "{missing}");
    assert_eq!(yaml("# nothing said\n"), Ok(defaults()));
}

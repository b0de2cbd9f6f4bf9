//! A mail provider as they are: it speaks plainly only until STARTTLS, and takes mail
//! from whoever has a password.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use gristmill::TaskType;
use morning_deck::briefing::RunBriefing;
use morning_deck::config::QueuePlace;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::desk::{BOTH, Desk};
use crate::tls::certified;

/// `ada` with `secret`, as AUTH PLAIN has it.
const LOGIN: &str = "AUTH PLAIN AGFkYQBzZWNyZXQ=";

/// What a client said, line by line, and whether each was encrypted.
type Said = Arc<Mutex<Vec<(bool, String)>>>;

struct Provider {
    port: u16,
    said: Said,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    TheStart,
    StartTls,
    Never,
}

impl Provider {
    fn start(folder: &Path, encrypted: From) -> Self {
        let config = certified(folder);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, said) = (listener.local_addr().unwrap().port(), Said::default());
        let heard = said.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (config, heard) = (config.clone(), heard.clone());
                // Who believes in other authorities hangs up.
                std::thread::spawn(move || drop(connection(stream, &config, encrypted, &heard)));
            }
        });
        Provider { port, said }
    }

    fn said(&self) -> Vec<(bool, String)> {
        self.said.lock().unwrap().clone()
    }
}

fn connection(
    mut stream: TcpStream,
    config: &Arc<ServerConfig>,
    encrypted: From,
    said: &Said,
) -> std::io::Result<()> {
    if encrypted != From::TheStart {
        stream.write_all(b"220 provider\r\n")?;
        let offer = if encrypted == From::StartTls {
            "250-provider\r\n250 STARTTLS\r\n"
        } else {
            "250 provider\r\n"
        };
        if !talk(&mut stream, false, offer, said)? {
            return Ok(());
        }
    }
    let tls = ServerConnection::new(config.clone()).unwrap();
    let mut stream = StreamOwned::new(tls, stream);
    if encrypted == From::TheStart {
        stream.write_all(b"220 provider\r\n")?;
    }
    talk(&mut stream, true, "250-provider\r\n250 AUTH LOGIN PLAIN\r\n", said).map(drop)
}

/// Talks until the client leaves, or true when what follows is encrypted.
fn talk(
    stream: impl Read + Write,
    encrypted: bool,
    hello: &str,
    said: &Said,
) -> std::io::Result<bool> {
    // A client says nothing before it was answered: nothing is read ahead.
    let mut client = BufReader::new(stream);
    let (mut known, mut line) = (false, String::new());
    while client.read_line(&mut line)? > 0 {
        let command = line.trim_end().to_owned();
        line.clear();
        said.lock().unwrap().push((encrypted, command.clone()));
        let reply = match command.split([' ', ':']).next().unwrap() {
            "EHLO" => hello,
            "STARTTLS" => "220 go on\r\n",
            "AUTH" if command == LOGIN => {
                known = true;
                "235 welcome\r\n"
            }
            "AUTH" => "535 that is not the password\r\n",
            "QUIT" => "221 bye\r\n",
            _ if !known => "530 who are you?\r\n",
            "DATA" => {
                client.get_mut().write_all(b"354 end with a dot\r\n")?;
                while client.read_line(&mut line)? > 0 && line != ".\r\n" {
                    said.lock().unwrap().push((encrypted, line.trim_end().to_owned()));
                    line.clear();
                }
                line.clear();
                "250 kept\r\n"
            }
            _ => "250 ok\r\n",
        };
        client.get_mut().write_all(reply.as_bytes())?;
        client.get_mut().flush()?;
        if command == "STARTTLS" {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A desk whose mails go out by this provider, a minute before a briefing of one story.
async fn desk(place: QueuePlace, provider: &Provider, properties: &str) -> Desk {
    let properties = format!(
        "application.mail.host=127.0.0.1\napplication.mail.port={}\n{properties}",
        provider.port
    );
    let mut desk = Desk::with(place, &properties).await;
    let (reader, _) = desk.imported(100).await;
    desk.news(&[42]).await;
    desk.cycle().await;
    desk.briefing(reader, "00:00", None).await;
    desk
}

fn trusting(folder: &Path, encryption: &str, password: &str) -> String {
    format!(
        "application.mail.encryption={encryption}\napplication.mail.user=ada\n\
         application.mail.password={password}\napplication.tls.authorities={}\n",
        folder.join("ca.crt").display()
    )
}

/// The briefing failed, and this is why.
async fn why(desk: &Desk) -> String {
    assert_eq!(desk.statuses("briefing"), ["ERROR"]);
    let failed = desk.failed(RunBriefing::QUEUE).await;
    failed[0].error.clone().unwrap()
}

#[tokio::test]
async fn a_briefing_goes_out_over_tls_with_a_login() {
    let folder = tempfile::tempdir().unwrap();
    for (place, encryption, from) in
        [(BOTH[0], "starttls", From::StartTls), (BOTH[1], "tls", From::TheStart)]
    {
        let provider = Provider::start(folder.path(), from);
        let properties = trusting(folder.path(), encryption, "secret");
        let mut desk = desk(place, &provider, &properties).await;
        desk.cycle().await;
        assert_eq!(desk.statuses("briefing"), ["ACTIVE"]);
        assert_eq!(desk.number("SELECT count(*) FROM report WHERE mailed_at IS NOT NULL"), 1);
        let said = provider.said();
        let clear: Vec<_> = said.iter().filter(|(encrypted, _)| !encrypted).collect();
        let clear: Vec<_> = clear.iter().map(|(_, line)| line.as_str()).collect();
        let hello =
            if from == From::StartTls { vec!["EHLO morning-deck", "STARTTLS"] } else { vec![] };
        assert_eq!(clear, hello, "nothing else is said in the clear");
        for line in [LOGIN, "RCPT TO:<ada@example.com>", "1. Story 42 (42)", "QUIT"] {
            assert!(said.contains(&(true, line.to_owned())), "{line} is not in {said:?}");
        }
        assert_eq!(desk.mail.received(), [], "no other server had a hand in it");
    }
}

#[tokio::test]
async fn a_provider_that_refuses_or_offers_no_encryption_is_an_error_and_hears_no_password() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Provider::start(folder.path(), From::StartTls);
    let mut refused = desk(BOTH[0], &provider, &trusting(folder.path(), "starttls", "guess")).await;
    refused.cycle().await;
    let error = why(&refused).await;
    assert!(error.contains("535") && error.contains("that is not the password"), "{error}");
    assert!(!error.contains("guess"), "{error}");

    let provider = Provider::start(folder.path(), From::Never);
    let mut clear = desk(BOTH[0], &provider, &trusting(folder.path(), "starttls", "secret")).await;
    clear.cycle().await;
    let error = why(&clear).await;
    assert!(error.contains("STARTTLS is not supported"), "{error}");
    let said = provider.said();
    assert!(said.iter().all(|(_, line)| line == "EHLO morning-deck"), "{said:?}");
}

#[tokio::test]
async fn a_provider_whom_nobody_vouches_for_gets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Provider::start(folder.path(), From::StartTls);
    let public = "application.mail.encryption=starttls\napplication.mail.user=ada\n\
                  application.mail.password=secret\n";
    let mut desk = desk(BOTH[0], &provider, public).await;
    desk.cycle().await;
    let error = why(&desk).await;
    assert!(error.contains("certificate"), "{error}");
    let said = provider.said();
    assert!(said.iter().all(|(encrypted, _)| !encrypted), "{said:?}");
}

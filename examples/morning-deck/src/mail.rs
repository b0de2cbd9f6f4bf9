//! A report as a mail: plain text, in the encoding that every mail server takes.

use std::fmt::Write as _;

use lettre::message::Mailbox;
use lettre::message::header::{ContentTransferEncoding, ContentType};
use lettre::{Address, Message};

use crate::briefing::Report;
use crate::error::Result;
use crate::smtp;

/// An item as a report tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// What it is called.
    pub title: String,
    /// Where it is.
    pub url: String,
    /// What it says.
    pub summary: Option<String>,
    /// What it is worth.
    pub score: i64,
}

/// A mail to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// Who gets it.
    pub to: String,
    /// The same each time the same report is sent, so that a receiver can tell
    /// a repetition.
    pub id: String,
    /// What it is called.
    pub subject: String,
    /// What it says.
    pub text: String,
}

/// Writes a report.
pub fn compose(report: &Report, to: &str) -> Mail {
    let mut text = String::new();
    for (place, story) in report.stories.iter().enumerate() {
        let Story { title, url, summary, score } = story;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}. {title} ({score})", place + 1);
        if let Some(summary) = summary {
            let _ = writeln!(text, "   {summary}");
        }
        let _ = writeln!(text, "   {url}\n");
    }
    Mail {
        to: to.to_owned(),
        id: format!("briefing-{}-{}@morning-deck", report.briefing, report.day),
        subject: format!("{}, {}", report.title, report.day),
        text,
    }
}

impl Mail {
    /// Headers and text as they are sent.
    ///
    /// # Errors
    /// When the receiver has no mail address.
    pub fn message(&self, from: Address) -> Result<Message> {
        let Mail { to, id, subject, text } = self;
        let builder = Message::builder()
            .from(Mailbox::new(None, from))
            .to(Mailbox::new(None, smtp::address(to)?))
            .subject(subject)
            .message_id(Some(format!("<{id}>")))
            .header(ContentType::TEXT_PLAIN)
            .header(ContentTransferEncoding::QuotedPrintable);
        Ok(builder.body(text.clone())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_story_comes_first_and_names_its_page() {
        let story = |title: &str, score| Story {
            title: title.to_owned(),
            url: format!("http://example.com/{score}"),
            summary: Some("About a café".to_owned()),
            score,
        };
        let report = Report {
            id: 7,
            briefing: 3,
            title: "Café".to_owned(),
            day: "2026-01-05".to_owned(),
            to: None,
            stories: vec![story("Best", 90), story("Good", 50)],
        };
        let mail = compose(&report, "ada@example.com");
        assert!(mail.text.starts_with("1. Best (90)\n   About a café\n   http://example.com/90\n"));
        assert!(mail.text.contains("2. Good (50)"));
        assert_eq!(mail.id, "briefing-3-2026-01-05@morning-deck");
        let message = mail.message(smtp::address("deck@example.com").expect("one"));
        let message = message.expect("a message").formatted();
        let message = String::from_utf8(message).expect("text");
        assert!(message.contains("\r\nMessage-ID: <briefing-3-2026-01-05@morning-deck>\r\n"));
        assert!(message.contains("\r\nSubject: =?utf-8?"), "{message}");
        assert!(message.contains("caf=C3=A9\r\n"), "readable where it can be: {message}");
        assert!(message.lines().all(|line| line.is_ascii() && line.len() <= 100), "{message}");
        assert!(!message.replace("\r\n", "").contains('\n'));
    }

    #[test]
    fn no_line_break_gets_into_a_header() {
        let mail = Mail {
            to: "ada@example.com".to_owned(),
            id: "1@morning-deck".to_owned(),
            subject: "a\r\nBcc: eve@example.com".to_owned(),
            text: "hello".to_owned(),
        };
        let message = mail.message(smtp::address("deck@example.com").expect("one"));
        let message = message.expect("a message").formatted();
        let message = String::from_utf8(message).expect("text");
        assert!(!message.lines().any(|line| line.starts_with("Bcc")), "{message}");
    }
}

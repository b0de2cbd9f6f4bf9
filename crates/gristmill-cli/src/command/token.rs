//! `token`: who may call over HTTP.

use gristmill_contract::duration;
use gristmill_server::{Deed, NewToken, Reach, Scope, TokenError, TokenView, Tokens};
use serde::Serialize;

use super::{Session, tell, who};
use crate::args::{TokenCreateArgs, TokenRevokeArgs};
use crate::failure::{Exit, Failure};
use crate::output::table;
use crate::serve::say;
use crate::store::Missing;

/// Make a token.
#[derive(Debug)]
pub(crate) struct Create(NewToken);

/// A token as it is shown once.
#[derive(Serialize)]
struct Made<'a> {
    token: &'a str,
    #[serde(flatten)]
    view: &'a TokenView,
}

/// List tokens.
#[derive(Debug)]
pub(crate) struct List;

/// Take a token back.
#[derive(Debug)]
pub(crate) struct Revoke {
    name: String,
    by: String,
}

impl Create {
    pub(crate) fn meant(args: TokenCreateArgs) -> Result<Self, Failure> {
        let mut scopes = Vec::new();
        for word in &args.scope {
            let scope: Scope =
                word.trim().parse().map_err(|why| Failure::usage(format!("--scope: {why}")))?;
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        let reach =
            Reach::of(&args.queue).map_err(|why| Failure::usage(format!("--queue: {why}")))?;
        let lasts = args.expires.map(|text| duration::parse(&text)).transpose();
        let lasts = lasts.map_err(|why| Failure::usage(format!("--expires: {why}")))?;
        let by = who(args.by)?;
        let token = NewToken { name: args.name, scopes, reach, lasts, by };
        // Before a store is made for it.
        token.check().map_err(|why| Failure::usage(why.to_string()))?;
        Ok(Create(token))
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Create).await?;
        let tokens = Tokens::of(&mill);
        let first = !tokens.any().await?;
        let by = self.0.by.clone();
        let made = tokens.create(self.0).await;
        if let Ok((_, view)) = &made {
            let note = format!("{} for {}", view.scopes.join(", "), queues(view));
            let deed =
                Deed { target: Some(view.name.clone()), note: Some(note), ..Deed::default() };
            tell(&mill, &by, "token.create", deed).await;
        }
        mill.close().await?;
        let (secret, view) = made.map_err(|error| match error {
            TokenError::Store(error) => error.into(),
            TokenError::Taken(_) | TokenError::TooMany => {
                Failure::new(Exit::Refused, "token", error.to_string())
            }
            other => Failure::usage(other.to_string()),
        })?;
        if session.output.json {
            return session.output.value(&Made { token: secret.reveal(), view: &view });
        }
        say(format_args!(
            "token '{}' ({}) for {}{}; it is shown this once:",
            view.name,
            view.scopes.join(", "),
            queues(&view),
            view.expires_at.as_ref().map_or_else(String::new, |at| format!(", until {at}")),
        ));
        session.output.line(secret.reveal())?;
        if first {
            say("from now on HTTP asks everybody for a token, also on this machine");
        }
        Ok(())
    }
}

fn queues(view: &TokenView) -> String {
    match view.queues.as_slice() {
        [all] if all == "*" => "all queues".to_owned(),
        queues => queues.join(", "),
    }
}

impl List {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let found = Tokens::of(&mill).list().await;
        mill.close().await?;
        let found = found?;
        if session.output.json {
            return session.output.value(&found);
        }
        if found.is_empty() {
            return session.output.line("no tokens: HTTP on this machine asks nobody");
        }
        let mut shown =
            table::new(&["name", "state", "scopes", "queues", "created", "by", "expires"]);
        for one in found {
            shown.add_row([
                one.name.clone(),
                one.state.as_str().to_owned(),
                one.scopes.join(", "),
                queues(&one),
                one.created_at.clone(),
                one.created_by.clone(),
                one.expires_at.unwrap_or_else(|| "never".to_owned()),
            ]);
        }
        session.output.line(table::text(&shown))
    }
}

impl Revoke {
    pub(crate) fn meant(args: TokenRevokeArgs) -> Result<Self, Failure> {
        Ok(Revoke { name: args.name, by: who(args.by)? })
    }

    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let mill = session.open(Missing::Fail).await?;
        let tokens = Tokens::of(&mill);
        let revoked = tokens.revoke(&self.name).await;
        if matches!(revoked, Ok(true)) {
            let deed = Deed { target: Some(self.name.clone()), ..Deed::default() };
            tell(&mill, &self.by, "token.revoke", deed).await;
        }
        let left = tokens.any().await;
        mill.close().await?;
        if !revoked? {
            let shown: String = self.name.chars().take(80).collect();
            let why = format!("there is no token '{shown}'; 'gristmill token list' lists them");
            return Err(Failure::new(Exit::Refused, "unknown_token", why));
        }
        let is_last = !left?;
        if is_last {
            say("that was the last one: a service that only this machine can reach asks nobody \
                 from now on, and one that others can reach lets nobody in");
        }
        if session.output.json {
            let value =
                serde_json::json!({ "name": self.name, "revoked": true, "tokens_left": !is_last });
            return session.output.value(&value);
        }
        session.output.line(format_args!("token '{}' is revoked", self.name))
    }
}

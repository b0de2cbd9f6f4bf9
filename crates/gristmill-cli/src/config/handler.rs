//! Who handles a queue's tasks, in the configuration: a command, one that stays, or a
//! URL with the secret that requests to it are signed with.

use std::path::Path;
use std::sync::Arc;

use gristmill_contract::yaml::{Fields, Mistakes, Node};

use super::Config;
use super::kept::{self, Given, Kept};
use crate::exec::Means;
use crate::hook::{Address, Hook, Secrets};

/// Reads the handler of a queue, if it has one, and where its secret is kept.
pub(super) fn read(
    fields: &mut Fields<'_>,
    node: &Node,
    folder: &Path,
    config: &mut Config,
    mistakes: &mut Mistakes,
) -> (Option<Means>, Option<Kept>) {
    let exec = exec(fields, node, mistakes);
    let (hook, secret) = hook(fields, folder, config, mistakes);
    if let (Some(_), Some(at)) = (&exec, fields.node("http")) {
        mistakes.add(at, "a queue has one handler: exec or http".to_owned());
    }
    (exec.or(hook), secret)
}

fn exec(fields: &mut Fields<'_>, node: &Node, mistakes: &mut Mistakes) -> Option<Means> {
    let command = fields.text("exec", mistakes);
    if let (Some(command), Some(at)) = (&command, fields.node("exec"))
        && command.trim().is_empty()
    {
        mistakes.add(at, "exec is empty: give a command, or leave it out".to_owned());
    }
    let stays = match fields.text("mode", mistakes).as_deref() {
        None | Some("task") => false,
        Some("stream") => true,
        Some(_) => {
            let at = fields.node("mode").unwrap_or(node);
            mistakes.add(at, "mode is task (a program each) or stream (one that stays)".to_owned());
            false
        }
    };
    if let (None, Some(at)) = (&command, fields.node("mode")) {
        mistakes.add(at, "mode goes with exec: give the command, or leave it out".to_owned());
    }
    let command = command?;
    Some(if stays { Means::Stays(command) } else { Means::Program(command) })
}

fn hook(
    fields: &mut Fields<'_>,
    folder: &Path,
    config: &mut Config,
    mistakes: &mut Mistakes,
) -> (Option<Means>, Option<Kept>) {
    let url = kept::read(fields, "http", folder, mistakes);
    let secret = kept::read(fields, "secret", folder, mistakes);
    for given in [&url, &secret].into_iter().flatten() {
        if let Kept::File(file) = &given.kept {
            config.files.push(file.clone());
        }
    }
    match (fields.node("http"), fields.node("secret")) {
        (Some(at), None) => {
            let why =
                "requests are signed: say 'secret: {env: VARIABLE}' or {file: PATH} beside it";
            mistakes.add(at, why.to_owned());
        }
        (None, Some(at)) => {
            mistakes.add(at, "secret goes with http: give the URL, or leave it out".to_owned());
        }
        _ => {}
    }
    let kept = secret.as_ref().map(|secret| secret.kept.clone());
    let address = url.and_then(|Given { text, at, .. }| {
        let read = Address::read(&text);
        read.map_err(|why| mistakes.add(at, format!("http: {why}"))).ok()
    });
    let secrets = secret.and_then(|Given { text, at, .. }| {
        let read = Secrets::read(&text);
        read.map_err(|why| mistakes.add(at, format!("secret: {why}"))).ok()
    });
    match (address, secrets) {
        (Some(address), Some(secrets)) => {
            (Some(Means::Hook(Arc::new(Hook::new(address, secrets)))), kept)
        }
        _ => (None, kept),
    }
}

//! `reserve … -- COMMAND` where a server has the stores: claim, run, renew meanwhile, release, each a request of its own.

use relay_core::domain::limits::ALIVE_WITHIN;
use relay_core::domain::time::Span;
use relay_core::error::Code;
use relay_core::store::{Clock, Result};
use relay_core::verbs::{Key, Request, release, reserve};
use relay_server::http::Reply;
use serde_json::Value;

use crate::app::App;
use crate::remote::Remote;
use crate::{process, render};

pub fn cycle(app: &App, remote: &Remote, request: Request, ttl: Span, command: &[String]) -> u8 {
    // No key stands for the whole, as where the stores are: made again, the claim is the same one, renewed.
    let claimed = match ask(app, remote, request, "reserve") {
        Ok(reply) if reply.status == 0 => reply,
        Ok(reply) => return app.pass_on(&reply),
        Err(refusal) => return app.fail_outside("reserve", &refusal),
    };
    let mut held = Held { app, remote, outcome: outcome(&claimed) };
    if !app.output.json && !held.outcome.conflicts.is_empty() {
        let (conflicts, total) = (&held.outcome.conflicts, held.outcome.conflicts_total);
        app.output.complain(&render::conflicts(conflicts, total, app.clock.now()));
    }
    let status = match process::spawn(command, app.output.json) {
        Ok(mut child) => {
            // Not before: an answer is one line, and until the command runs it may have to be that of an error.
            if app.output.json {
                app.pass_on(&claimed);
            }
            wait(app, &mut child, &held, ttl)
        }
        Err(refusal) => {
            // There is no cycle: what was held before it stays held.
            held.outcome.granted.retain(|granted| !granted.renewed);
            app.fail_outside("reserve", &refusal)
        }
    };
    held.ask(&release::Input::default());
    status
}

fn ask(app: &App, remote: &Remote, request: Request, command: &str) -> Result<Reply> {
    remote.ask(&app.sent(request, command, Key::said(None, &app.random)?)?)
}

/// What the server granted. One that says something else has granted nothing that could be given back.
fn outcome(reply: &Reply) -> reserve::Outcome {
    let answer: Value = serde_json::from_str(&reply.line).unwrap_or_default();
    let nothing = reserve::Outcome { granted: Vec::new(), conflicts: Vec::new(), conflicts_total: 0 };
    serde_json::from_value(answer["result"].clone()).unwrap_or(nothing)
}

fn wait(app: &App, child: &mut std::process::Child, held: &Held<'_>, ttl: Span) -> u8 {
    // No process beside the store says that the agent lives: a renewal does.
    let pause = (ttl.as_millis() / 3).min(ALIVE_WITHIN.as_millis() / 2);
    let mut renewed = app.clock.monotonic();
    let ended = process::wait(child, || {
        let now = app.clock.monotonic();
        if now.as_millis() - renewed.as_millis() > pause {
            renewed = now;
            held.ask(&release::Input { renew: Some(ttl), ..release::Input::default() });
        }
    });
    match ended {
        Ok(status) => process::exit_code(status),
        Err(refusal) => app.fail_outside("reserve", &refusal),
    }
}

/// What was claimed for the command.
struct Held<'a> {
    app: &'a App,
    remote: &'a Remote,
    outcome: reserve::Outcome,
}

impl Held<'_> {
    /// Releases or renews each claim. One that is gone meanwhile is nobody's concern any more, and what cannot be given back
    /// now ends by itself.
    fn ask(&self, input: &release::Input) {
        for granted in &self.outcome.granted {
            let request = Request::Release(release::Input { id: vec![granted.id], ..input.clone() });
            if let Err(text) = self.one(request) {
                self.app.output.complain(&format!("#{} could not be released or renewed: {text}\n", granted.id));
            }
        }
    }

    fn one(&self, request: Request) -> std::result::Result<(), String> {
        let reply = ask(self.app, self.remote, request, "release").map_err(|refusal| refusal.to_string())?;
        let answer: Value = serde_json::from_str(&reply.line).unwrap_or_default();
        let is_gone = answer["error"]["code"] == Code::ReservationNotHeld.as_str();
        if reply.status == 0 || is_gone { Ok(()) } else { Err(answer["error"]["message"].to_string()) }
    }
}

use relay_core::domain::limits::TTL_DEFAULT;
use relay_core::error::Code;
use relay_core::store::{Clock, Guard, Result};
use relay_core::verbs::{self, Ctx, Key, Outcome, Request, release, reserve::Input, wait};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Asks, cycle, words};
use crate::app::{App, Opened};
use crate::process;
use crate::remote::Remote;

/// Claim paths before you edit them
///
/// Every valid claim is granted: a claim is a signal to the others, not a lock. What it conflicts with is returned
/// beside it. With a command after `--`, relay claims, runs the command while renewing, releases, and passes its exit
/// status on. With --json, standard output holds relay's one line alone, written once the command runs; what the
/// command prints goes to standard error.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  relay reserve 'src/auth/**' --reason bd-123\n  relay reserve res:dev-database --if-free --wait 5m\n  relay reserve src/main.rs -- cargo fmt\n\nPatterns start at the project's root. `*` and `?` stay in one folder, `**` is any number of folders; a path without wildcards covers everything under it; `res:NAME` claims something that is not a file."
)]
pub struct Args {
    /// Paths or patterns, from the project's root
    #[arg(value_name = "PATTERN", required = true)]
    #[serde(deserialize_with = "words::list")]
    #[schemars(extend("hint" = "src/auth/**, a/path.rs, or res:NAME for what is no file"))]
    patterns: Vec<String>,
    /// How long, 60s to 24h; your own activity renews it [default: 1h]
    #[arg(long, value_name = "TTL", allow_hyphen_values = true)]
    #[schemars(extend("hint" = "60s to 24h, default 1h"))]
    ttl: Option<String>,
    /// Share it with other shared claims
    #[arg(long)]
    #[serde(default)]
    #[schemars(extend("hint" = "with other shared claims"))]
    shared: bool,
    /// The thread that you do it for
    #[arg(long, value_name = "THREAD")]
    #[schemars(extend("hint" = "thread"))]
    reason: Option<String>,
    /// Claim nothing where somebody else holds a part of it
    #[arg(long)]
    #[serde(default)]
    if_free: bool,
    /// With --if-free: wait this long for it to become free
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    #[schemars(extend("hint" = "for it to become free, such as 5m"))]
    wait: Option<String>,
    /// Run this while holding the claim
    #[arg(last = true, value_name = "COMMAND")]
    #[serde(skip)]
    command: Vec<String>,
}

impl Asks for Args {
    fn request(&self) -> Result<Request> {
        Ok(Request::Reserve(Input {
            patterns: self.patterns.clone(),
            ttl: words::span(self.ttl.as_deref())?,
            shared: self.shared,
            reason: words::thread(self.reason.as_deref())?,
            if_free: self.if_free,
            wait: words::span(self.wait.as_deref())?,
        }))
    }
}

impl Args {
    pub fn run(&self, app: &App) -> u8 {
        if self.command.is_empty() {
            return app.run(self.request(), "reserve");
        }
        let (request, remote) = match self.request().and_then(|request| Ok((request, Remote::named()?))) {
            Ok(asked) => asked,
            Err(refusal) => return app.fail_outside("reserve", &refusal),
        };
        if let (Some(remote), Request::Reserve(input)) = (remote, &request) {
            return cycle::cycle(app, &remote, request.clone(), input.ttl.unwrap_or(TTL_DEFAULT), &self.command);
        }
        match app.open(Some(&request)) {
            Ok(opened) => self.cycle(app, &opened, &request),
            Err(refusal) => app.fail_outside("reserve", &refusal),
        }
    }

    /// Claim, run, renew meanwhile, release, pass the status on.
    fn cycle(&self, app: &App, opened: &Opened, request: &Request) -> u8 {
        // A command that ran cannot be taken back, so no key stands for the whole: each cycle claims anew, and one that
        // failed is made again by whoever can start the command.
        let ctx = match app.context(opened) {
            Ok(ctx) => Ctx { key: fresh_key(app), ..ctx },
            Err(refusal) => return app.fail_outside("reserve", &refusal),
        };
        let claimed = match app.ask(&ctx, request) {
            Ok(done) => done,
            Err(refusal) => return app.fail_outside("reserve", &refusal),
        };
        let Outcome::Reserve(outcome) = &claimed.outcome else { return 70 };
        let mut held = Held { app, ctx: &ctx, ids: outcome.granted.iter().map(|granted| granted.id).collect() };
        if !app.output.json && !outcome.conflicts.is_empty() {
            app.output.complain(&crate::render::conflicts(&outcome.conflicts, outcome.conflicts_total, ctx.now));
        }
        let launched = self.launch(app, &ctx);
        if launched.is_err() {
            // There is no cycle: what was held before it stays held.
            let is_new = |id: &u64| outcome.granted.iter().any(|granted| granted.id == *id && !granted.renewed);
            held.ids.retain(is_new);
        }
        // Not before: an answer is one line, and until the command runs it may have to be that of an error.
        if app.output.json && launched.is_ok() {
            app.print(&claimed, ctx.now);
        }
        let status = match launched {
            Ok(mut command) => match self.wait(&mut command, &held) {
                Ok(status) => status,
                Err(refusal) => {
                    app.output.complain(&format!("{refusal}\n"));
                    refusal.code.kind().exit_status()
                }
            },
            Err(refusal) => app.fail_outside("reserve", &refusal),
        };
        if let Err(refusal) = held.ask(&release::Input::default()) {
            app.output.complain(&format!("The claim could not be released: {refusal}\n"));
        }
        app.leave(opened);
        status
    }

    fn launch(&self, app: &App, ctx: &Ctx<'_>) -> Result<Command> {
        // While the command runs this process speaks for the agent: nobody takes the claim over.
        let me = ctx.store.read().and_then(|facts| verbs::acting_party(ctx, &*facts))?;
        let alive = ctx.store.presence().enter(&wait::announcement(ctx, "run", me, Vec::new(), Vec::new()))?;
        Ok(Command { child: process::spawn(&self.command, app.output.json)?, _alive: alive })
    }

    fn wait(&self, command: &mut Command, held: &Held<'_>) -> Result<u8> {
        let ttl = words::span(self.ttl.as_deref())?.unwrap_or(TTL_DEFAULT);
        let clock = &held.app.clock;
        let mut renewed = (clock.monotonic(), clock.now());
        let status = process::wait(&mut command.child, || {
            let now = (clock.monotonic(), clock.now());
            // A claim ends by the clock; time that only goes forward may stand still while the machine sleeps.
            let passed = (now.0.as_millis() - renewed.0.as_millis()).max(now.1.since(renewed.1).as_millis());
            if passed > ttl.as_millis() / 3 {
                renewed = now;
                // Best effort: a renewal that fails is tried again, and the claim outlives two of them.
                let _ = held.ask(&release::Input { renew: Some(ttl), ..release::Input::default() });
            }
        })?;
        Ok(process::exit_code(status))
    }
}

/// The command that runs, and the announcement that it does.
struct Command {
    child: std::process::Child,
    _alive: Box<dyn Guard>,
}

/// What was claimed for the command. Meanwhile some of it may be given back, taken over, or out of time.
struct Held<'a> {
    app: &'a App,
    ctx: &'a Ctx<'a>,
    ids: Vec<u64>,
}

impl Held<'_> {
    /// Releases or renews what is still held; what is gone is nobody's concern any more.
    fn ask(&self, input: &release::Input) -> Result<()> {
        // Between the look and the request one more may go, and then the others are asked for again.
        for _ in 0..=self.ids.len() {
            let ctx = Ctx { key: fresh_key(self.app), now: self.app.clock.now(), ..app_context(self.ctx) };
            let id = self.still_held(&ctx)?;
            if id.is_empty() {
                break;
            }
            match verbs::run(&ctx, &Request::Release(release::Input { id, ..input.clone() })) {
                Err(refusal) if refusal.code == Code::ReservationNotHeld => {}
                other => return other.map(drop),
            }
        }
        Ok(())
    }

    fn still_held(&self, ctx: &Ctx<'_>) -> Result<Vec<u64>> {
        let facts = ctx.store.read()?;
        let me = verbs::acting_party(ctx, &*facts)?;
        let mut held = Vec::new();
        for id in &self.ids {
            let claim = facts.claim(*id)?.filter(|claim| claim.is_live(ctx.now) && me.is(&claim.holder));
            held.extend(claim.map(|claim| claim.id));
        }
        Ok(held)
    }
}

fn fresh_key(app: &App) -> Key {
    use relay_core::store::Random;
    Key { text: relay_core::domain::event::hex(&app.random.bytes()), chosen: false }
}

/// The same caller in the same project, for a later request.
fn app_context<'a>(ctx: &Ctx<'a>) -> Ctx<'a> {
    Ctx { project: ctx.project.clone(), caller: ctx.caller.clone(), key: ctx.key.clone(), ..*ctx }
}

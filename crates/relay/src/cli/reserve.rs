use relay_core::domain::limits::TTL_DEFAULT;
use relay_core::domain::time::Span;
use relay_core::store::{Clock, Result};
use relay_core::verbs::{self, Ctx, Key, Outcome, Request, recover, release, reserve::Input, wait};

use super::{Asks, words};
use crate::app::{App, Opened};
use crate::process;

/// Claim paths before you edit them
///
/// Every valid claim is granted: a claim is a signal to the others, not a lock. What it conflicts with is returned
/// beside it. With a command after `--`, relay claims, runs the command while renewing, releases, and passes its exit
/// status on.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  relay reserve 'src/auth/**' --reason bd-123\n  relay reserve res:dev-database --if-free --wait 5m\n  relay reserve src/main.rs -- cargo fmt\n\nPatterns start at the project's root. `*` and `?` stay in one folder, `**` is any number of folders; a path without wildcards covers everything under it; `res:NAME` claims something that is not a file."
)]
pub struct Args {
    /// Paths or patterns, from the project's root
    #[arg(value_name = "PATTERN", required = true)]
    patterns: Vec<String>,
    /// How long, 60s to 24h; your own activity renews it [default: 1h]
    #[arg(long, value_name = "TTL", allow_hyphen_values = true)]
    ttl: Option<String>,
    /// Share it with other shared claims
    #[arg(long)]
    shared: bool,
    /// The thread that you do it for
    #[arg(long, value_name = "THREAD")]
    reason: Option<String>,
    /// Claim nothing where somebody else holds a part of it
    #[arg(long)]
    if_free: bool,
    /// With --if-free: wait this long for it to become free
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    wait: Option<String>,
    /// Run this while holding the claim
    #[arg(last = true, value_name = "COMMAND")]
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
        let request = match self.request() {
            Ok(request) => request,
            Err(refusal) => return app.fail_outside("reserve", &refusal),
        };
        match app.open(Some(&request)) {
            Ok(opened) => self.cycle(app, &opened, &request),
            Err(refusal) => app.fail_outside("reserve", &refusal),
        }
    }

    /// Claim, run, renew meanwhile, release, pass the status on.
    fn cycle(&self, app: &App, opened: &Opened, request: &Request) -> u8 {
        let ctx = match app.context(opened) {
            Ok(ctx) => ctx,
            Err(refusal) => return app.fail_outside("reserve", &refusal),
        };
        let claimed = match app.ask(&ctx, request) {
            Ok(done) => done,
            Err(refusal) => return app.fail(&recover::failure(&ctx, request, &refusal)),
        };
        let Outcome::Reserve(outcome) = &claimed.outcome else { return 70 };
        let ids: Vec<u64> = outcome.granted.iter().map(|granted| granted.id).collect();
        if app.output.json {
            app.print(&claimed, ctx.now);
        } else if !outcome.conflicts.is_empty() {
            app.output.complain(&crate::render::conflicts(&outcome.conflicts, outcome.conflicts_total, ctx.now));
        }
        let status = self.hold(app, &ctx, &ids);
        let give_back = Request::Release(release::Input { id: ids, ..release::Input::default() });
        let released = verbs::run(&Ctx { key: fresh_key(app), now: app.clock.now(), ..app_context(&ctx) }, &give_back);
        if let Err(refusal) = released {
            app.output.complain(&format!("The claim could not be released: {refusal}\n"));
        }
        opened.store.tidy(opened.limits.gate_wait);
        match status {
            Ok(status) => status,
            Err(refusal) => app.fail_outside("reserve", &refusal),
        }
    }

    fn hold(&self, app: &App, ctx: &Ctx<'_>, ids: &[u64]) -> Result<u8> {
        // While the command runs this process speaks for the agent: nobody takes the claim over.
        let me = ctx.store.read().and_then(|facts| verbs::acting_party(ctx, &*facts))?;
        let _alive = ctx.store.presence().enter(&wait::announcement(ctx, "run", me, Vec::new(), Vec::new()))?;
        let ttl = words::span(self.ttl.as_deref())?.unwrap_or(TTL_DEFAULT);
        let mut child = process::spawn(&self.command, app.output.json)?;
        let mut renewed = app.clock.monotonic();
        let status = process::wait(&mut child, || {
            let now = app.clock.monotonic();
            if now.as_millis() - renewed.as_millis() > ttl.as_millis() / 3 {
                renewed = now;
                renew(app, ctx, ids, ttl);
            }
        })?;
        Ok(process::exit_code(status))
    }
}

/// Best effort: a renewal that fails is tried again, and the claim outlives two of them.
fn renew(app: &App, ctx: &Ctx<'_>, ids: &[u64], ttl: Span) {
    let request = Request::Release(release::Input { id: ids.to_vec(), renew: Some(ttl), ..release::Input::default() });
    let _ = verbs::run(&Ctx { key: fresh_key(app), now: app.clock.now(), ..app_context(ctx) }, &request);
}

fn fresh_key(app: &App) -> Key {
    use relay_core::store::Random;
    Key { text: relay_core::domain::event::hex(&app.random.bytes()), chosen: false }
}

/// The same caller in the same project, for a later request.
fn app_context<'a>(ctx: &Ctx<'a>) -> Ctx<'a> {
    Ctx { project: ctx.project.clone(), caller: ctx.caller.clone(), key: ctx.key.clone(), ..*ctx }
}

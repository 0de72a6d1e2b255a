//! `serve` and `mcp`: the same desk, for many over HTTP and for one over the standard streams.

use std::io::ErrorKind;
use std::net::SocketAddr;

use owo_colors::OwoColorize;
use relay_core::error::Code;
use relay_core::store::{Clock, Result};
use relay_server::{Desk, Origin, http, stdio};
use relay_store::openings::Openings;
use relay_store::tokens::Tokens;
use serde_json::json;

use crate::app::{App, Said, credential};
use crate::page::{self, Page, Place};
use crate::served::Served;
use crate::{config, environment, human, remote};

/// Serve MCP over HTTP to agents of this machine, or of others, and a page to the human
///
/// Agents call the ten verbs as tools at /mcp, each request with a token that `relay token add` made. It listens to this
/// machine alone unless told otherwise. Commands and other servers may use the same stores meanwhile.
/// The human opens the page with `relay serve --open`, also while a server runs: a link that works once, for two minutes.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  relay serve --open\n  relay token add laptop\n  relay serve\n  relay serve --listen 127.0.0.1:8080 --project /abs/repo\n  relay serve --listen 0.0.0.0:7717 --allow-host bus.example --without-tls"
)]
pub struct Serve {
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7717")]
    listen: String,
    /// Another name under which it is called; may be repeated
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// A web page that may call it, such as https://app.example; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Listen beyond this machine though tokens and mail pass in the clear: something in front of it encrypts
    #[arg(long)]
    without_tls: bool,
    /// Open the human's page in a browser; where a server runs at the address already, that one's
    #[arg(long)]
    open: bool,
}

/// Serve MCP over the standard streams to the agent that starts it
///
/// The project is that of --project, RELAY_PROJECT or the working directory; the agent is named in each call, by RELAY_AGENT, or
/// by the session of the harness. It ends with its input, and with whoever started it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  relay mcp\n  relay mcp --project /abs/repo\n\nClaude Code, for one, is told of it by `claude mcp add relay -- relay mcp`."
)]
pub struct Mcp {}

impl Serve {
    pub fn run(&self, app: &App) -> u8 {
        match self.serve(app) {
            Ok(()) => 0,
            Err(refusal) => app.fail_outside("serve", &refusal),
        }
    }

    fn serve(&self, app: &App) -> Result<()> {
        let listen: SocketAddr = self.listen.parse().map_err(|_| {
            Code::InputInvalid.refuse(format!("{:?} is no address; say 127.0.0.1:7717, or [::1]:7717", self.listen))
        })?;
        if !listen.ip().is_loopback() && !self.without_tls {
            let text = format!(
                "{listen} can be reached from other machines, where tokens and mail would pass in the clear; listen on 127.0.0.1 and put \
                 something that encrypts in front of it, or say --without-tls"
            );
            return Err(Code::InputInvalid.refuse(text));
        }
        let (home, limits) = app.home()?;
        // Only one that is named: those who call are elsewhere than this process.
        let named = app.globals.project.is_some() || environment::project().is_some();
        let project = if named { Some(app.project()?.to_string()) } else { None };
        let tokens = Tokens::of(home.root());
        let config = http::Config {
            listen,
            hosts: self.allow_host.clone(),
            origins: self.allow_origin.clone(),
            project,
            owner: credential(),
            limits: config::read(home.root())?.serve,
        };
        if self.open {
            human::create(home.root(), &app.random)?;
        }
        let (root, openings) = (home.root().to_owned(), Openings::of(home.root()));
        let desk = Desk::new(served(), root, limits);
        let announced = |listens| self.announce(app, listens, &tokens, &openings);
        match http::run(desk, config, tokens.clone(), openings.clone(), announced) {
            // Somebody else may be serving there: then it is that one's page that is wanted.
            Err(fault) if self.open && fault.kind() == ErrorKind::AddrInUse && page::is_ours_at(listen) => {
                let page = self.page(app, listen, &openings)?;
                let text = format!("A server listens on {listen} already.\n{}", page.text);
                let said = Said { result: json!({"page": page.link}), text, signals: Vec::new(), next: Vec::new() };
                app.answer("serve", Ok(said));
                page.show(app.output);
                Ok(())
            }
            ended => ended.map_err(|fault| {
                Code::InputInvalid
                    .refuse(format!("{listen} cannot be listened on: {fault}; --listen names another address"))
            }),
        }
    }

    /// Says where it listens, once it does, and opens the page where that is wanted.
    fn announce(&self, app: &App, listens: SocketAddr, tokens: &Tokens, openings: &Openings) {
        let url = format!("http://{listens}/mcp");
        let is_open = tokens.list().is_ok_and(|tokens| !tokens.is_empty());
        let next = if is_open { Vec::new() } else { vec!["relay token add NAME".to_owned()] };
        let (mut result, mut text) = (json!({"url": url}), format!("{} {url}\n", "Listening on".bold()));
        let page = if self.open { self.page(app, listens, openings).map(Some) } else { Ok(None) };
        match &page {
            Ok(Some(page)) => {
                result["page"] = json!(page.link);
                text.push_str(&page.text);
            }
            // No code in what may be kept as a log.
            Ok(None) => text.push_str("The page: relay serve --open\n"),
            // It serves all the same, and the same command says so again.
            Err(refusal) => app.output.complain(&format!("{} no link to the page: {refusal}\n", "Error:".red().bold())),
        }
        app.answer("serve", Ok(Said { result, text, signals: Vec::new(), next }));
        page.ok().flatten().iter().for_each(|page| page.show(app.output));
    }

    fn page(&self, app: &App, listens: SocketAddr, openings: &Openings) -> Result<Page> {
        let place = Place::of(listens, self.allow_host.first().map(String::as_str));
        let code = openings.make(listens, place.is_shown(), app.clock.now(), &app.random)?;
        Ok(place.page(&code))
    }
}

impl Mcp {
    pub fn run(&self, app: &App) -> u8 {
        match serve_one(app) {
            Ok(()) => 0,
            Err(refusal) => app.fail_outside("mcp", &refusal),
        }
    }
}

fn serve_one(app: &App) -> Result<()> {
    if let Some(url) = remote::address() {
        // The stores of this machine are another bus than the one that everybody else is on.
        let text =
            format!("RELAY_URL names a server, which speaks MCP itself: connect the agent to {url}/mcp, or unset it");
        return Err(Code::InputInvalid.refuse(text));
    }
    let (home, limits) = app.home()?;
    app.named()?;
    // One that is not found now is said with each request: the client should not lose its server over it, and few show
    // more of one that ended than that it did. Whoever named a wrong one is told at once as well.
    let named = app.globals.project.clone().or_else(environment::project);
    let project = match app.project() {
        Ok(project) => Some(project.to_string()),
        Err(refusal) => {
            if named.is_some() {
                app.output.complain(&format!(
                    "{} {refusal}; until that is mended each call says so\n",
                    "Error:".red().bold()
                ));
            }
            named
        }
    };
    let origin = Origin {
        credential: credential(),
        separate: false,
        project,
        agent: app.globals.agent.clone().or_else(environment::agent),
        session: app.session.clone(),
        pass: None,
    };
    let desk = Desk::new(served(), home.root().to_owned(), limits);
    stdio::run(desk, origin)
        .map_err(|fault| Code::Internal.refuse(format!("the standard streams cannot be served: {fault}")))
}

fn served() -> std::sync::Arc<Served> {
    std::sync::Arc::new(Served { owner: credential() })
}

//! Composition: from arguments to a context, through the verb, to an answer and an exit status.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use relay_core::domain::limits::Limits;
use relay_core::domain::name::{AgentName, HUMAN, ProjectKey};
use relay_core::domain::time::Timestamp;
use relay_core::error::{Code, Refusal};
use relay_core::playbook::Setting;
use relay_core::store::{Clock, Result, Store};
use relay_core::verbs::{self, Caller, Ctx, Done, Key, Request, recover};
use relay_core::wire::v1::{Answer, Failure, Signal, SignalCode};
use relay_server::{Speech, mcp};
use relay_store::sqlite::Sqlite;
use relay_store::{Home, SystemRandom, repository};

use crate::cli::{Cli, Globals};
use crate::clock::SystemClock;
use crate::closed::Closed;
use crate::hook::sessions;
use crate::installation::Here;
use crate::output::{Output, Written};
use crate::remote::Remote;
use crate::{cli, config, environment, human, process, render};

pub fn main() -> ExitCode {
    let arguments = environment::arguments();
    match Cli::try_parse_from(&arguments) {
        Ok(parsed) => ExitCode::from(cli::run(parsed)),
        Err(fault) => ExitCode::from(usage(&arguments, &fault)),
    }
}

/// Help and version are answers; everything else about the arguments is invalid input, in the shape that was asked for.
fn usage(arguments: &[std::ffi::OsString], fault: &clap::Error) -> u8 {
    if !fault.use_stderr() {
        return Output { json: false }.written(fault.print()).status();
    }
    let words: Vec<&str> =
        arguments.iter().take_while(|argument| *argument != "--").filter_map(|argument| argument.to_str()).collect();
    if words.contains(&"--json") {
        let verb = verb(&words);
        let refusal = Code::InputInvalid.refuse(one_line(&fault.to_string()));
        let setting = Setting { verb: verb.map(str::to_owned), ..Setting::default() };
        Output { json: true }.line(&recover::failure_outside(verb.unwrap_or("relay"), &refusal, &setting));
    } else {
        let _ = fault.print();
    }
    Code::InputInvalid.kind().exit_status()
}

/// What is wrong, and with which arguments; the usage and the tips after it are for people.
fn one_line(fault: &str) -> String {
    let lines = fault.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
    lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
}

/// The command that is meant: the first word that is neither a flag nor the value of one, when there is such a command.
fn verb<'a>(words: &[&'a str]) -> Option<&'a str> {
    let takes_value = |word: &str| matches!(word, "--project" | "--agent" | "--idempotency-key");
    let named = words.windows(2).find(|pair| !pair[1].starts_with('-') && !takes_value(pair[0]))?[1];
    Cli::command().find_subcommand(named).map(|_| named)
}

/// What reaches the bus: the operating system's user.
pub fn credential() -> String {
    format!("uid:{}", rustix::process::geteuid().as_raw())
}

/// The session that the command is given in. One that was cleared has another name by now, and programs that it started know it by the
/// first. Where no variable says it, the program above does, unless somebody is named.
fn session(globals: &Globals) -> Option<String> {
    let said = environment::session();
    let Ok(home) = environment::home() else { return said };
    let is_named = || globals.agent.is_some() || environment::agent().is_some();
    match said {
        Some(session) => Some(sessions::canonical(&home, session)),
        None if is_named() => None,
        None => sessions::around(&home),
    }
}

fn is_name(name: &str) -> bool {
    name == HUMAN || AgentName::parse(name).is_ok()
}

/// Everything a command needs that is not of one project.
pub struct App {
    pub globals: Globals,
    pub output: Output,
    pub clock: SystemClock,
    pub random: SystemRandom,
    /// The harness's session, by the name that it has on the bus.
    pub session: Option<String>,
}

/// A project that was found, with its store open.
pub struct Opened<S = Sqlite> {
    pub home: Home,
    pub limits: Limits,
    pub project: ProjectKey,
    pub store: S,
    pub repository: repository::Files,
    here: Here,
}

impl App {
    pub fn new(globals: Globals) -> Self {
        let output = Output { json: globals.json };
        let session = session(&globals);
        App { globals, output, clock: SystemClock::new(), random: SystemRandom, session }
    }

    /// The home, also where its configuration cannot be read: that is none of a doctor's business but to say so.
    pub fn home_of_defaults(&self) -> Result<Home> {
        Ok(Home::new(environment::home()?, Limits::default(), self.clock.now().millis()))
    }

    pub fn home(&self) -> Result<(Home, Limits)> {
        let root = environment::home()?;
        let limits = config::limits(&root)?;
        Ok((Home::new(root, limits.clone(), self.clock.now().millis()), limits))
    }

    /// `--project`, `RELAY_PROJECT`, or the repository around the working directory.
    pub fn project(&self) -> Result<ProjectKey> {
        match self.globals.project.clone().or_else(environment::project) {
            Some(path) => repository::resolve(Path::new(&path)),
            None => repository::around(&environment::working_directory()?),
        }
    }

    pub fn open(&self, request: Option<&Request>) -> Result<Opened> {
        self.named()?;
        let (home, limits) = self.home()?;
        let project = self.project()?;
        let repository = self.files(&project);
        if let Some(request) = request {
            self.key()?;
            verbs::check(request, &self.caller(home.root())?, &limits, &repository)?;
        }
        let makes_it = request.is_some_and(Request::begins_a_project);
        let store = if makes_it { Some(home.open_or_create(&project)?) } else { home.open_existing(&project)? };
        let store = store.ok_or_else(|| {
            // A request is here only where no server was asked; what asks for nothing looks at the stores themselves.
            if request.is_some() { self.nobody_here(&home, &project) } else { self.no_store_here(&home, &project) }
        })?;
        let here = self.here(&home, &project);
        Ok(Opened { home, limits, project, store, repository, here })
    }

    /// The project whose store could not be opened, with a store that says why. None where there is no such project, or
    /// the request itself is at fault.
    fn open_closed(&self, refusal: &Refusal) -> Option<Opened<Closed>> {
        let is_the_stores = refusal.code.as_str().starts_with("STORE_")
            || matches!(refusal.code, Code::AgentNotRegistered | Code::Unauthorized);
        let (home, limits) = self.home().ok().filter(|_| is_the_stores)?;
        let project = self.project().ok()?;
        let (repository, here) = (self.files(&project), self.here(&home, &project));
        Some(Opened { home, limits, project, store: Closed(refusal.clone()), repository, here })
    }

    /// What is around a project's store.
    pub fn here(&self, home: &Home, project: &ProjectKey) -> Here {
        Here { home: home.clone(), project: project.clone(), output: self.output }
    }

    /// A project that was just moved here.
    pub fn open_moved(&self, project: &ProjectKey) -> Result<Opened> {
        let (home, limits) = self.home()?;
        let store = home.open_existing(project)?.ok_or_else(|| self.nobody_here(&home, project))?;
        let (repository, here) = (self.files(project), self.here(&home, project));
        Ok(Opened { home, limits, project: project.clone(), store, repository, here })
    }

    fn files(&self, project: &ProjectKey) -> repository::Files {
        repository::Files::new(project).seen_from(self.folders()).of_user(environment::user())
    }

    /// From where the repository is seen: the folder that was named, or else the working directory.
    pub fn folders(&self) -> Vec<PathBuf> {
        let named = self.globals.project.clone().or_else(environment::project).map(PathBuf::from);
        named.into_iter().chain(environment::working_directory().ok()).collect()
    }

    /// The folder of the project's store, whatever state that is in.
    pub fn folder(&self) -> Result<(Home, ProjectKey, PathBuf)> {
        self.named()?;
        let (home, _) = self.home()?;
        let project = self.project()?;
        let folder = home.known(&project)?.ok_or_else(|| self.no_store_here(&home, &project))?;
        Ok((home, project, folder))
    }

    fn no_store_here(&self, home: &Home, project: &ProjectKey) -> Refusal {
        self.elsewhere(home, project).unwrap_or_else(|| self.nobody_here(home, project))
    }

    fn nobody_here(&self, home: &Home, project: &ProjectKey) -> Refusal {
        let named = self.globals.agent.clone().or_else(environment::agent).filter(|name| is_name(name));
        home.nobody_in(project, named.as_deref())
    }

    pub fn context<'a, S: Store>(&'a self, opened: &'a Opened<S>) -> Result<Ctx<'a>> {
        self.context_of(opened, self.caller(opened.home.root())?)
    }

    /// The same for anyone of this user's, whoever is named: what is looked at does not depend on who looks.
    pub fn context_of_anyone<'a, S: Store>(&'a self, opened: &'a Opened<S>) -> Result<Ctx<'a>> {
        self.context_of(opened, Caller { credential: credential(), ..Caller::default() })
    }

    fn context_of<'a, S: Store>(&'a self, opened: &'a Opened<S>, caller: Caller) -> Result<Ctx<'a>> {
        Ok(Ctx {
            store: &opened.store,
            bus: &opened.home,
            repository: &opened.repository,
            installation: &opened.here,
            clock: &self.clock,
            random: &self.random,
            limits: &opened.limits,
            project: opened.project.clone(),
            caller,
            key: self.key()?,
            now: self.clock.now(),
            pid: std::process::id(),
        })
    }

    /// A step on behalf of somebody who reached this process with another credential than its own.
    pub fn run_for(&self, credential: &str, request: &Request) -> Result<serde_json::Value> {
        let opened = self.open(Some(request))?;
        let (credential, named) = (credential.to_owned(), self.named()?);
        let caller = Caller { credential, separate: true, named, ..Caller::default() };
        let done = verbs::run(&self.context_of(&opened, caller)?, request)?;
        serde_json::to_value(&done.outcome).map_err(|fault| Code::Internal.refuse(fault.to_string()))
    }

    /// The agent of `--agent`. A name that is none is refused also where nobody acts.
    pub fn named(&self) -> Result<Option<AgentName>> {
        let name = self.globals.agent.as_deref().filter(|name| *name != HUMAN);
        Ok(name.map(AgentName::parse).transpose()?)
    }

    fn caller(&self, home: &Path) -> Result<Caller> {
        let named = self.globals.agent.as_deref();
        if named == Some(HUMAN) {
            human::verify(home)?;
            return Ok(Caller::human(credential()));
        }
        Caller::said(credential(), named, environment::agent().as_deref(), self.session.clone())
    }

    pub fn key(&self) -> Result<Key> {
        Key::said(self.globals.idempotency_key.as_deref(), &self.random)
    }

    /// Runs one request from start to exit status; `verb` is the command that makes it.
    pub fn run(&self, request: Result<Request>, verb: &str) -> u8 {
        match Remote::named() {
            Ok(None) => self.run_here(request, verb),
            Ok(Some(remote)) => self.run_there(&remote, request, verb),
            Err(refusal) => self.fail_outside(verb, &refusal),
        }
    }

    fn run_here(&self, request: Result<Request>, verb: &str) -> u8 {
        let outcome = request.and_then(|request| {
            let opened = self.open(Some(&request))?;
            Ok((request, opened))
        });
        match outcome {
            Ok((request, opened)) => self.run_in(&opened, &request, verb, None),
            Err(refusal) => self.fail_outside(verb, &refusal),
        }
    }

    /// The same for `recover`, which goes on where the store cannot be opened: that may be what it is about.
    pub fn recover(&self, request: Result<Request>) -> u8 {
        let request = match request {
            // What is wrong with the way to a server is mended here.
            Ok(Request::Recover(input)) if environment::url().is_some() && input.code != Code::StoreUnreachable => {
                return self.run(Ok(Request::Recover(input)), "recover");
            }
            Ok(request) => request,
            Err(refusal) => return self.fail_outside("recover", &refusal),
        };
        let refusal = match self.open(Some(&request)) {
            Ok(opened) => return self.run_in(&opened, &request, "recover", None),
            Err(refusal) => refusal,
        };
        let Some(closed) = self.open_closed(&refusal) else { return self.fail_outside("recover", &refusal) };
        // Whoever lacks the human's credential is nobody until it is there.
        let is_nobody = refusal.code == Code::Unauthorized;
        let ctx = if is_nobody { self.context_of_anyone(&closed) } else { self.context(&closed) };
        let answered = ctx.and_then(|ctx| Ok((self.ask(&ctx, &request)?, ctx.now)));
        match answered {
            Ok((done, now)) => self.print(&done, now).status(),
            Err(refusal) => self.fail_outside("recover", &refusal),
        }
    }

    fn run_in(&self, opened: &Opened, request: &Request, command: &str, recovered: Option<Signal>) -> u8 {
        let ctx = match self.context(opened) {
            Ok(ctx) => ctx,
            Err(refusal) => return self.fail_outside(request.verb(), &refusal),
        };
        #[cfg(feature = "test-doors")]
        if environment::test_break().as_deref() == Some(request.verb()) {
            return self.fail(&recover::failure(&ctx, request, &Code::Internal.refuse("broken by a test")));
        }
        let status = match self.ask(&ctx, request) {
            Ok(mut done) => {
                cli::clean_up_after(&opened.store, opened.limits.gate_wait, &mut done.outcome);
                done.signals.extend(recovered);
                self.succeed(&ctx, &done)
            }
            // Trying again with the file that is open heals nothing when another has taken its place.
            Err(refusal) if recovered.is_none() && opened.store.was_replaced() && recover::heals(request, &refusal) => {
                let text =
                    format!("{} on the first try of {}: the store was opened anew", refusal.code, request.verb());
                return match self.open(Some(request)) {
                    Ok(anew) => {
                        let signal = Signal::new(SignalCode::Recovered, text);
                        self.run_in(&anew, request, command, Some(signal))
                    }
                    Err(refusal) => self.fail_outside(command, &refusal),
                };
            }
            Err(refusal) => self.fail(&recover::failure_of(&ctx, request, command, &refusal)),
        };
        self.leave(opened);
        status
    }

    /// After the answer: what is left to do for the store and its archive, without making anybody wait.
    pub fn leave(&self, opened: &Opened) {
        opened.store.tidy(opened.limits.gate_wait);
        if !opened.store.has_committed() || environment::drains_later() {
            return;
        }
        // Whoever is in office looks once more after leaving it, and finds what we wrote.
        let is_free = opened.store.archive().try_office().is_ok_and(|office| office.is_some());
        if let (true, Ok(program)) = (is_free, environment::own_program()) {
            // Whoever is about to end leaves it to the system to take note of its end.
            let _ = process::leave_behind(&program, &["drain", "--background", "--project", opened.project.as_str()]);
        }
    }

    /// Runs a request. What is proposed next runs in the same shell: it repeats what this command line said of project
    /// and agent.
    pub fn ask(&self, ctx: &Ctx<'_>, request: &Request) -> Result<Done> {
        let mut done = verbs::run(ctx, request)?;
        done.repeat(self.globals.project.as_deref(), self.globals.agent.as_deref());
        Ok(done)
    }

    fn succeed(&self, ctx: &Ctx<'_>, done: &Done) -> u8 {
        point!("app-before-answer");
        let written = self.print(done, ctx.now);
        let Some(afterwards) = done.afterwards.as_ref().filter(|_| written == Written::Out) else {
            return written.status();
        };
        point!("app-before-surfaced");
        // Only now is it true that the text was handed over.
        match afterwards.commit(ctx) {
            Ok(()) => 0,
            Err(refusal) => {
                self.output.complain(&format!("The mail was shown, but could not be marked as read: {refusal}\n"));
                refusal.code.kind().exit_status()
            }
        }
    }

    pub fn print(&self, done: &Done, now: Timestamp) -> Written {
        #[cfg(feature = "test-doors")]
        if environment::test_break().is_some_and(|broken| broken.strip_suffix(":hollow") == Some(done.verb)) {
            return self.output.line(&Answer::new(done.verb, serde_json::json!({}), Vec::new(), Vec::new()));
        }
        if self.output.json {
            self.output.line(&Answer::new(done.verb, &done.outcome, done.signals.clone(), done.next.clone()))
        } else {
            self.output.text(&render::done(done, now, Speech::Commands, &mcp::boundary()))
        }
    }

    pub fn fail(&self, failure: &Failure) -> u8 {
        let failure = &self.minding_the_sandbox(failure.clone());
        if self.output.json {
            self.output.line(failure);
        } else {
            self.output.complain(&render::failure(failure, Speech::Commands));
        }
        failure.error.kind.exit_status()
    }

    /// The shell of a coding agent may run in a sandbox that lets it neither write nor connect; its MCP server does not.
    fn minding_the_sandbox(&self, mut failure: Failure) -> Failure {
        let is_forbidden = matches!(failure.error.code, Code::StoreReadonly | Code::StoreUnreachable);
        let tool = cli::tools::TOOLS.iter().map(|tool| tool.told.name).find(|name| *name == failure.verb);
        if let (true, true, Some(tool)) = (is_forbidden, self.session.is_some(), tool) {
            failure.error.message.push_str(&format!(
                "; where a sandbox forbids that to this shell, the tool `{tool}` of the MCP server `relay` does the same"
            ));
        }
        failure
    }

    pub fn fail_outside(&self, verb: &str, refusal: &Refusal) -> u8 {
        self.fail_with_key(verb, refusal, None)
    }

    /// The same for a request that was on its way: its key is what makes it harmless to ask again, whatever became of it.
    pub fn fail_with_key(&self, verb: &str, refusal: &Refusal, key: Option<String>) -> u8 {
        let setting = Setting {
            project: self.project().ok().map(|project| project.to_string()),
            // A step with a name that is none would fail like the request did, and so would one of a human who is none yet.
            agent: self
                .globals
                .agent
                .clone()
                .or_else(environment::agent)
                .filter(|name| is_name(name) && !(refusal.code == Code::Unauthorized && name == HUMAN)),
            kept: None,
            key,
            verb: Some(verb.to_owned()),
        };
        let failure = recover::failure_outside(verb, refusal, &setting);
        self.fail(&failure)
    }

    /// The answer of an operator's command that is no verb.
    pub fn answer(&self, verb: &str, result: Result<impl Into<Said>>) -> u8 {
        let said: Said = match result {
            Ok(said) => said.into(),
            Err(refusal) => return self.fail_outside(verb, &refusal),
        };
        let written = if self.output.json {
            self.output.line(&Answer::new(verb, said.result, said.signals, said.next))
        } else {
            self.output.text(&render::closing(said.text, &said.signals, &said.next, Speech::Commands))
        };
        written.status()
    }
}

/// What an operator's command has to say: for programs and for people.
pub struct Said {
    pub result: serde_json::Value,
    pub text: String,
    pub signals: Vec<Signal>,
    pub next: Vec<String>,
}

impl From<(serde_json::Value, String)> for Said {
    fn from((result, text): (serde_json::Value, String)) -> Self {
        Said { result, text, signals: Vec::new(), next: Vec::new() }
    }
}

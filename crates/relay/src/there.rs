//! Composition where a server has the stores: what is sent to it, what it answered, and what is only on this machine.

use relay_core::domain::name::{HUMAN, ProjectKey};
use relay_core::error::{Code, Refusal};
use relay_core::store::Result;
use relay_core::verbs::{Key, Request};
use relay_server::http::{Reply, Sent};
use relay_store::Home;

use crate::app::App;
use crate::output::Written;
use crate::remote::Remote;
use crate::{environment, human, remote};

impl App {
    /// Runs one request from start to exit status, as [`App::run`] does where the stores are.
    pub fn run_there(&self, remote: &Remote, request: Result<Request>, command: &str) -> u8 {
        let sent = request.and_then(|request| self.sent(request, command, self.key()?));
        let sent = match sent {
            Ok(sent) => sent,
            Err(refusal) => return self.fail_outside(command, &refusal),
        };
        match remote.ask(&sent) {
            Ok(reply) => self.pass_on(&reply),
            Err(refusal) => self.fail_with_key(command, &refusal, sent.key),
        }
    }

    /// What is sent to a server. The project is found here all the same: it is where the caller is. Who is in none leaves it
    /// to the server, which may have one for those.
    pub fn sent(&self, request: Request, command: &str, key: Key) -> Result<Sent> {
        self.named()?;
        let project = match self.project() {
            Err(refusal) if refusal.code == Code::ProjectUnresolved => None,
            found => Some(found?.to_string()),
        };
        let project_is_said = self.globals.project.is_some();
        // Of one whose name is no text nothing can be said; no project has such a path either.
        let seen_from = self.folders().into_iter().filter(|folder| folder.to_str().is_some()).collect();
        let (agent, command) = (self.globals.agent.clone(), command.to_owned());
        let human = agent.as_deref().filter(|name| *name == HUMAN);
        let human = human.map(|_| environment::home().and_then(|home| human::secret(&home))).transpose()?;
        let (variable, session) = (environment::agent(), self.session.clone());
        // The key of a recovery is that of the request which failed.
        let has_key = key.chosen || !matches!(request, Request::Recover(_));
        let (key, key_is_made) = (Some(key.text).filter(|_| has_key), !key.chosen);
        Ok(Sent {
            command,
            request,
            project,
            project_is_said,
            seen_from,
            agent,
            variable,
            session,
            key,
            key_is_made,
            human,
        })
    }

    /// What a server answered, as if it had been answered here.
    pub fn pass_on(&self, reply: &Reply) -> u8 {
        let written = if self.output.json {
            self.output.exact(&format!("{}\n", reply.line))
        } else if reply.status == 0 {
            self.output.text(&reply.text)
        } else {
            self.output.complain(&reply.text);
            Written::Out
        };
        reply.status.max(written.status())
    }

    /// Where a server has the stores: that this command looks at those of this machine, and the project's is not among them.
    pub fn elsewhere(&self, home: &Home, project: &ProjectKey) -> Option<Refusal> {
        let url = remote::address()?;
        let text = format!(
            "there is no store of {project} in {}; RELAY_URL names the server at {url}, and this command looks at the stores of this \
             machine",
            home.root().display()
        );
        Some(Code::StoreUnreachable.refuse(text).with("url", url).with("elsewhere", true))
    }

    /// Tells a person whose things these are, where a server may have others.
    pub fn mind_the_server(&self, home: &Home) {
        if let Some(url) = remote::address().filter(|_| !self.output.json) {
            let home = home.root().display();
            self.output
                .complain(&format!("This is about the stores in {home}; the server at {url} may have others.\n"));
        }
    }
}

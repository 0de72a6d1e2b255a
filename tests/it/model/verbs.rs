//! The shape that every request has in the model: who acts, was it answered before, what comes of it, what follows.

use relay_core::verbs::{Request, link, policy, prepare, standing, start};
use serde_json::{Value, json};

use super::state::{Agent, Call, DAY, Model, Outcome, Refused, Standing, Thread, Who, known};

impl Model {
    pub fn call(&mut self, call: &Call) -> Outcome<Value> {
        match &call.request {
            Request::Start(input) => self.start(call, input),
            Request::Prepare(input) => self.prepare(call, input),
            Request::Reserve(input) => self.reserve(call, input),
            Request::Release(input) => self.release(call, input),
            Request::Link(input) => self.link_verb(call, input),
            Request::Send(input) => self.send(call, input),
            Request::Poll(input) => self.poll(call.who, input),
            Request::Ack(input) => self.write(call, |model| model.ack(call.who, input)),
            Request::Policy(input) => self.write(call, |model| Ok(model.policy(call.who, input))),
            Request::Standing(input) => self.write(call, |model| model.change_standing(call.who, input)),
            Request::Leave(input) => self.write(call, |model| model.leave(call.who, input.thread.as_str())),
            Request::Recover(input) => self.recover(input),
            other => panic!("the model does not know {}", other.verb()),
        }
    }

    /// All or nothing.
    pub fn whole<T>(&mut self, story: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        let mut next = self.clone();
        let outcome = story(&mut next);
        if outcome.is_ok() {
            *self = next;
        }
        outcome
    }

    /// A writing verb of somebody registered.
    pub fn write(&mut self, call: &Call, story: impl FnOnce(&mut Self) -> Outcome<Value>) -> Outcome<Value> {
        self.whole(|model| {
            model.acting(call.who)?;
            if let Some(first) = model.remembered(call)? {
                return Ok(first);
            }
            model.settle_held(call.who);
            let outcome = story(model)?;
            model.finish(call, &outcome);
            Ok(outcome)
        })
    }

    /// A verb that may be the agent's first.
    fn write_as_newcomer(&mut self, call: &Call, story: impl FnOnce(&mut Self) -> Outcome<Value>) -> Outcome<Value> {
        self.whole(|model| {
            if let Some(first) = model.remembered(call)? {
                return Ok(first);
            }
            let outcome = story(model)?;
            model.finish(call, &outcome);
            Ok(outcome)
        })
    }

    fn finish(&mut self, call: &Call, outcome: &Value) {
        self.renew_by_activity(call.who);
        if let Some(key) = &call.key {
            self.answers.insert((call.who, key.clone()), (call.request.clone(), outcome.clone()));
        }
        self.touch(call.who);
    }

    pub fn acting(&self, who: Who) -> Outcome<()> {
        let agent = self.agent(who).ok_or("AGENT_NOT_REGISTERED")?;
        match self.standing(agent) {
            Standing::Active => Ok(()),
            Standing::Retired => Err("AGENT_RETIRED".into()),
            Standing::Suspended => Err("AGENT_SUSPENDED".into()),
        }
    }

    /// The same key, the same request: the first answer. Another request: refused.
    fn remembered(&self, call: &Call) -> Outcome<Option<Value>> {
        let key = call.key.as_ref().map(|key| (call.who, key.clone()));
        match key.and_then(|key| self.answers.get(&key)) {
            None => Ok(None),
            Some((request, answer)) if *request == call.request => Ok(Some(answer.clone())),
            Some(_) => Err("IDEMPOTENCY_REUSED".into()),
        }
    }

    fn start(&mut self, call: &Call, input: &start::Input) -> Outcome<Value> {
        self.well_formed(&input.path)?;
        let mut answer = self.write_as_newcomer(call, |model| model.arrive(call.who, input, None))?;
        // The situation is read anew, whatever was answered before.
        answer["inbox"] = json!({"unread": self.unread(call.who)});
        answer["contested"] = json!(self.tell_contests(call.who, &[]));
        Ok(answer)
    }

    /// Registers or resumes, and claims what was asked for.
    fn arrive(&mut self, who: Who, input: &start::Input, reason: Option<&str>) -> Outcome<Value> {
        let new = self.agent(who).is_none();
        if new {
            let parent = input.parent.as_ref().map(|parent| known(parent.as_str()).unwrap());
            if parent.is_some_and(|parent| self.agent(parent).is_none()) {
                return Err("AGENT_NOT_REGISTERED".into());
            }
            self.agents.push(Agent {
                name: who,
                standing: Standing::Active,
                policy: relay_core::domain::agent::Policy::Auto,
                session: None,
                parent,
                thread: None,
                seen: self.now,
            });
            let session = self.given_session(who, input);
            self.bind(who, session);
            self.event("agent_registered", who);
        } else {
            self.resume(who, input)?;
        }
        self.touch(who);
        self.settle_held(who);
        let claimed = self.claim(who, &input.path, None, true, reason, false)?;
        let (granted, conflicts) = (&claimed["granted"], &claimed["conflicts"]);
        Ok(json!({"agent": {"name": who}, "new": new, "granted": granted, "conflicts": conflicts}))
    }

    fn resume(&mut self, who: Who, input: &start::Input) -> Outcome<()> {
        let given = self.given_session(who, input);
        let agent = self.agent(who).unwrap();
        let is_other = matches!((&agent.session, &given), (Some(bound), Some(given)) if bound != given);
        if is_other && self.is_alive(who) && !input.take_over {
            return Err("AGENT_NAME_TAKEN".into());
        }
        let standing = self.standing(agent);
        if standing == Standing::Suspended {
            return Err("AGENT_SUSPENDED".into());
        }
        let is_news = |given: &String| agent.session.as_ref() != Some(given) || self.sessions.get(given) != Some(&who);
        if standing == Standing::Retired || given.as_ref().is_some_and(is_news) {
            self.event("agent_resumed", who);
            self.agent_mut(who).standing = Standing::Active;
            self.bind(who, given);
        }
        Ok(())
    }

    /// A subagent takes no session that speaks for somebody else.
    fn given_session(&self, who: Who, input: &start::Input) -> Option<String> {
        let is_subagent = self.agent(who).is_some_and(|agent| agent.parent.is_some());
        let is_free = |session: &&String| self.sessions.get(*session).is_none_or(|owner| *owner == who);
        input.session.as_ref().filter(|session| !is_subagent || is_free(session)).cloned()
    }

    fn bind(&mut self, who: Who, session: Option<String>) {
        if let Some(session) = session {
            self.agent_mut(who).session = Some(session.clone());
            self.sessions.insert(session, who);
        }
    }

    fn prepare(&mut self, call: &Call, input: &prepare::Input) -> Outcome<Value> {
        self.write_as_newcomer(call, |model| {
            if model.agent(call.who).is_some() {
                model.acting(call.who)?;
                model.settle_held(call.who);
            } else {
                model.arrive(call.who, &input.start, None)?;
            }
            let key = input.thread.key();
            let new = !model.threads.contains_key(&key);
            let is_member = model.threads.get(&key).is_some_and(|thread| thread.members.contains(call.who));
            if !is_member || model.agent(call.who).unwrap().thread.as_deref() != Some(&key) {
                model.event("thread_prepared", call.who);
                model.open_thread(input.thread.as_str()).members.insert(call.who);
                model.agent_mut(call.who).thread = Some(key.clone());
            }
            Ok(json!({"thread": {"id": model.threads[&key].id}, "new": new}))
        })
    }

    /// The thread of this id, made if it is new.
    pub fn open_thread(&mut self, id: &str) -> &mut Thread {
        self.threads.entry(id.to_ascii_lowercase()).or_insert_with(|| Thread {
            id: id.to_owned(),
            members: std::collections::BTreeSet::new(),
            first: None,
            messages: 0,
            done: false,
        })
    }

    fn leave(&mut self, who: Who, thread: &str) -> Outcome<Value> {
        let key = thread.to_ascii_lowercase();
        let found = self.threads.get_mut(&key).ok_or("THREAD_NOT_FOUND")?;
        let left = found.members.remove(who);
        let id = found.id.clone();
        if left {
            self.event("thread_left", who);
            let agent = self.agent_mut(who);
            agent.thread = agent.thread.take().filter(|current| *current != key);
        }
        Ok(json!({"thread": id, "left": left}))
    }

    fn policy(&mut self, who: Who, input: &policy::Input) -> Value {
        if self.agent(who).unwrap().policy != input.policy {
            self.event("policy_set", who);
            self.agent_mut(who).policy = input.policy;
        }
        json!({"agent": who, "policy": input.policy})
    }

    fn change_standing(&mut self, by: Who, input: &standing::Input) -> Outcome<Value> {
        let name = input.name.as_ref().map_or(by, |name| known(name.as_str()).unwrap());
        let agent = self.agent(name).ok_or_else(|| Refused::from("AGENT_NOT_REGISTERED"))?;
        if input.action == standing::Action::Suspend && self.standing(agent) == Standing::Retired {
            return Err("AGENT_RETIRED".into());
        }
        let before = agent.standing;
        let (after, kind) = match (input.action, before) {
            (standing::Action::Retire, _) => (Standing::Retired, "agent_retired"),
            (standing::Action::Suspend, _) => (Standing::Suspended, "agent_suspended"),
            (standing::Action::Reinstate, Standing::Suspended) => (Standing::Active, "agent_reinstated"),
            // Only `start` revives.
            (standing::Action::Reinstate, other) => (other, "nothing"),
        };
        let mut released = Vec::new();
        if before != after {
            if after == Standing::Retired {
                released = self.give_back_all(by, name);
            }
            self.event(kind, by);
            self.agent_mut(name).standing = after;
        }
        let state = format!("{:?}", self.standing(self.agent(name).unwrap())).to_lowercase();
        Ok(json!({"agent": name, "state": state, "released": released}))
    }

    /// A retired agent keeps nothing.
    fn give_back_all(&mut self, by: Who, holder: Who) -> Vec<u64> {
        let held: Vec<u64> = self.live().filter(|claim| claim.holder == holder).map(|claim| claim.id).collect();
        if !held.is_empty() {
            self.event("reservation_released", by);
            self.end(&held);
        }
        held
    }

    fn link_verb(&mut self, call: &Call, input: &link::Input) -> Outcome<Value> {
        if input.ttl.is_some_and(|ttl| !(60_000..=365 * DAY).contains(&ttl.as_millis())) {
            return Err("TTL_OUT_OF_RANGE".into());
        }
        self.write(call, |model| {
            let target = input.target.as_ref().and_then(|target| known(&target.name));
            let target = target.filter(|target| model.agent(target).is_some()).ok_or("RECIPIENT_NOT_FOUND")?;
            if target == call.who {
                return Err("INPUT_INVALID".into());
            }
            let id = model.decide(call.who, target, input)?;
            let link = model.links.iter().find(|link| link.id == id).unwrap();
            let state = format!("{:?}", model.link_state(link)).to_lowercase();
            Ok(json!({"link": {"id": id, "state": state}}))
        })
    }
}

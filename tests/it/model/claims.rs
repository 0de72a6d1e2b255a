//! Claims in the model: reserve, release, and who is told of a contest.

use std::collections::BTreeSet;

use relay_core::domain::delivery::Line;
use relay_core::verbs::{release, reserve};
use serde_json::{Value, json};

use super::mail::Draft;
use super::paths::{self, WRONG};
use super::state::{Call, Claim, HOUR, MINUTE, Model, Number, Outcome, Time, Who, at};

fn check_ttl(ttl: Time) -> Outcome<()> {
    if (MINUTE..=24 * HOUR).contains(&ttl) { Ok(()) } else { Err("TTL_OUT_OF_RANGE".into()) }
}

impl Model {
    pub fn well_formed(&self, patterns: &[String]) -> Outcome<()> {
        let wrong = patterns.iter().find_map(|text| WRONG.iter().find(|(wrong, _)| wrong == text));
        wrong.map_or(Ok(()), |(_, code)| Err((*code).into()))
    }

    pub fn reserve(&mut self, call: &Call, input: &reserve::Input) -> Outcome<Value> {
        let ttl = input.ttl.map(relay_core::domain::time::Span::as_millis);
        check_ttl(ttl.unwrap_or(HOUR))?;
        self.well_formed(&input.patterns)?;
        let reason = input.reason.as_ref().map(relay_core::domain::name::ThreadId::as_str);
        self.write(call, |model| model.claim(call.who, &input.patterns, ttl, !input.shared, reason, input.if_free))
    }

    pub fn claim(
        &mut self,
        me: Who,
        patterns: &[String],
        ttl: Option<Time>,
        exclusive: bool,
        reason: Option<&str>,
        if_free: bool,
    ) -> Outcome<Value> {
        let mut wanted: Vec<&String> = Vec::new();
        patterns.iter().for_each(|pattern| {
            if !wanted.contains(&pattern) {
                wanted.push(pattern);
            }
        });
        let clashes: Vec<(usize, Claim)> = wanted
            .iter()
            .enumerate()
            .flat_map(|(index, pattern)| self.clashes(me, pattern, exclusive).into_iter().map(move |c| (index, c)))
            .collect();
        if if_free && !clashes.is_empty() {
            return Err("FILE_RESERVATION_CONFLICT".into());
        }
        let mut granted = Vec::new();
        for (index, pattern) in wanted.iter().enumerate() {
            let known: Vec<&Claim> = clashes.iter().filter(|(at, _)| *at == index).map(|(_, claim)| claim).collect();
            granted.push(self.grant(me, pattern, ttl.unwrap_or(HOUR), exclusive, reason, &known));
        }
        let conflicts: Vec<Value> = clashes
            .iter()
            .map(|(index, claim)| {
                json!({"id": claim.id, "pattern": claim.pattern, "holder": claim.holder, "exclusive": claim.exclusive,
                    "expires_at": at(claim.expires), "overlaps": wanted[*index]})
            })
            .collect();
        Ok(json!({"granted": granted, "conflicts": conflicts, "conflicts_total": clashes.len()}))
    }

    fn clashes(&self, me: Who, pattern: &str, exclusive: bool) -> Vec<Claim> {
        let clash = |claim: &&Claim| {
            !self.share_claims(me, claim.holder)
                && (exclusive || claim.exclusive)
                && paths::overlap(pattern, &claim.pattern)
        };
        self.live().filter(clash).cloned().collect()
    }

    fn grant(
        &mut self,
        me: Who,
        pattern: &str,
        ttl: Time,
        exclusive: bool,
        reason: Option<&str>,
        clashes: &[&Claim],
    ) -> Value {
        let now = self.now;
        let held = self.held(me, pattern).last().copied();
        let id = match held {
            Some(id) => {
                self.event("reservation_renewed", me);
                let claim = self.claims.iter_mut().find(|claim| claim.id == id).unwrap();
                (claim.ttl, claim.expires, claim.exclusive) = (ttl, now + ttl, exclusive);
                claim.reason = reason.map(str::to_owned).or(claim.reason.take());
                id
            }
            None => {
                let id = self.event("reservation_granted", me);
                self.claims.push(Claim {
                    id,
                    holder: me,
                    pattern: pattern.to_owned(),
                    exclusive,
                    reason: reason.map(str::to_owned),
                    ttl,
                    first: now,
                    expires: now + ttl,
                    generation: 0,
                    released: false,
                });
                id
            }
        };
        // The answer tells the claimant; a poll need not do so again.
        for theirs in clashes {
            self.told.insert((me, id, theirs.id), mark(exclusive, theirs));
        }
        json!({"id": id, "pattern": pattern, "exclusive": exclusive, "expires_at": at(now + ttl), "renewed": held.is_some()})
    }

    /// My live claims on exactly this pattern, the one that lives longest last. A takeover can make it two.
    fn held(&self, me: Who, pattern: &str) -> Vec<Number> {
        let mut held: Vec<&Claim> =
            self.live().filter(|claim| claim.holder == me && claim.pattern == pattern).collect();
        held.sort_by_key(|claim| (claim.expires, claim.id));
        held.iter().map(|claim| claim.id).collect()
    }

    /// The holder's own activity renews what is in the second half of its time, until a day after the first grant.
    pub fn renew_by_activity(&mut self, me: Who) {
        let now = self.now;
        let mut renewed = false;
        for claim in self.claims.iter_mut().filter(|claim| claim.holder == me && !claim.released && now < claim.expires)
        {
            let wanted = (now + claim.ttl).min(claim.first + 24 * HOUR);
            if claim.expires - now < claim.ttl / 2 && wanted > claim.expires {
                claim.expires = wanted;
                renewed = true;
            }
        }
        if renewed {
            self.event("reservation_renewed", me);
        }
    }

    pub fn end(&mut self, ids: &[Number]) {
        self.claims.iter_mut().filter(|claim| ids.contains(&claim.id)).for_each(|claim| claim.released = true);
        self.told.retain(|(_, mine, _), _| !ids.contains(mine));
    }

    /// What a poll or a start tells of contests, together with the mail that it shows: one event for all of it.
    pub fn tell_contests(&mut self, me: Who, shown: &[Number]) -> Vec<Value> {
        let current: Vec<(Claim, Claim)> =
            self.contests(me).into_iter().map(|(mine, theirs)| (mine.clone(), theirs.clone())).collect();
        let stands: BTreeSet<(Number, Number)> = current.iter().map(|(mine, theirs)| (mine.id, theirs.id)).collect();
        let mut rows = Vec::new();
        for (mine, theirs) in &current {
            let mark = mark(mine.exclusive, theirs);
            if self.told.insert((me, mine.id, theirs.id), mark.clone()) != Some(mark) {
                rows.push(json!({"mine": mine.id, "id": theirs.id, "holder": theirs.holder, "ended": false}));
            }
        }
        let is_over = |(who, mine, theirs): &(Who, Number, Number)| *who == me && !stands.contains(&(*mine, *theirs));
        let over: Vec<(Who, Number, Number)> = self.told.keys().filter(|pair| is_over(pair)).copied().collect();
        for pair in over {
            // What I gave up myself, or lost, is no news to me; what expired is.
            if self.claims.iter().any(|claim| claim.id == pair.1 && claim.holder == me) {
                let holder = self.claims.iter().find(|claim| claim.id == pair.2).unwrap().holder;
                rows.push(json!({"mine": pair.1, "id": pair.2, "holder": holder, "ended": true}));
                self.told.remove(&pair);
            }
        }
        let is_new = |id: &&Number| self.copy_of(me, **id).is_some_and(|copy| copy.surfaced.is_none());
        let fresh: Vec<Number> = shown.iter().filter(is_new).copied().collect();
        if !fresh.is_empty() || !rows.is_empty() {
            self.event("mail_surfaced", me);
            self.each_copy(me, &fresh, |_, _| {});
        }
        rows
    }

    pub fn release(&mut self, call: &Call, input: &release::Input) -> Outcome<Value> {
        input.renew.map_or(Ok(()), |ttl| check_ttl(ttl.as_millis()))?;
        self.well_formed(&input.patterns)?;
        let me = call.who;
        self.write(call, |model| {
            if input.force {
                return model.take_over(me, input);
            }
            let chosen = model.chosen(me, input)?;
            match input.renew {
                Some(ttl) => Ok(model.renew(me, &chosen, ttl.as_millis())),
                None => model.give_back(me, &chosen, input),
            }
        })
    }

    fn chosen(&self, me: Who, input: &release::Input) -> Outcome<Vec<Number>> {
        let names_nothing = input.patterns.is_empty() && input.id.is_empty() && input.reason.is_none();
        let everything = input.all || names_nothing;
        let for_reason = |claim: &Claim| match (&claim.reason, &input.reason) {
            (Some(one), Some(other)) => one.eq_ignore_ascii_case(other.as_str()),
            _ => false,
        };
        let own = self.live().filter(|claim| claim.holder == me);
        let mut chosen: Vec<Number> =
            own.filter(|claim| everything || for_reason(claim)).map(|claim| claim.id).collect();
        for pattern in &input.patterns {
            let mut held = self.held(me, pattern);
            held.sort_unstable();
            if held.is_empty() {
                return Err("RESERVATION_NOT_HELD".into());
            }
            chosen.extend(held);
        }
        for id in &input.id {
            if !self.live().any(|claim| claim.id == *id && claim.holder == me) {
                return Err("RESERVATION_NOT_HELD".into());
            }
            chosen.push(*id);
        }
        let mut seen = BTreeSet::new();
        chosen.retain(|id| seen.insert(*id));
        Ok(chosen)
    }

    fn renew(&mut self, me: Who, ids: &[Number], ttl: Time) -> Value {
        let now = self.now;
        if !ids.is_empty() {
            self.event("reservation_renewed", me);
        }
        for claim in self.claims.iter_mut().filter(|claim| ids.contains(&claim.id)) {
            (claim.ttl, claim.expires) = (ttl, now + ttl);
        }
        let kept: Vec<Value> = ids.iter().map(|id| json!({"id": id, "expires_at": at(now + ttl)})).collect();
        if kept.is_empty() { json!({"released": []}) } else { json!({"released": [], "kept": kept}) }
    }

    fn give_back(&mut self, me: Who, ids: &[Number], input: &release::Input) -> Outcome<Value> {
        if !ids.is_empty() {
            self.event("reservation_released", me);
            self.end(ids);
        }
        let pattern = |id: &Number| self.claims.iter().find(|claim| claim.id == *id).unwrap().pattern.clone();
        let released: Vec<Value> = ids.iter().map(|id| json!({"id": id, "pattern": pattern(id)})).collect();
        let mut answer = json!({"released": released});
        if let (true, Some(thread)) = (input.done, &input.reason) {
            let was_done = self.threads.get(&thread.key()).is_some_and(|thread| thread.done);
            let is_for_it = |claim: &Claim| {
                claim.reason.as_ref().is_some_and(|reason| reason.eq_ignore_ascii_case(thread.as_str()))
            };
            let works_in_it = self.claims.iter().any(|claim| ids.contains(&claim.id) && is_for_it(claim));
            answer["thread_done"] = json!(self.close(me, thread.as_str(), works_in_it)?);
            if was_done {
                answer["was_done"] = json!(true);
            }
        }
        Ok(answer)
    }

    /// Closes a thread and says so in it, to those whom a message reaches.
    fn close(&mut self, me: Who, thread: &str, works_in_it: bool) -> Outcome<String> {
        let key = thread.to_ascii_lowercase();
        if works_in_it && !self.threads.get(&key).is_some_and(|thread| thread.members.contains(me)) {
            self.event("thread_prepared", me);
            self.open_thread(thread).members.insert(me);
            self.agent_mut(me).thread = Some(key.clone());
        }
        let found = self.threads.get(&key).ok_or("THREAD_NOT_FOUND")?.clone();
        // Who was told does not hear of it again; there may be somebody left who works in it.
        if found.done && !self.agents.iter().any(|agent| agent.thread.as_ref() == Some(&key)) {
            return Ok(found.id);
        }
        if !found.done && found.members.iter().any(|member| *member != me) {
            let draft = Draft {
                named: vec![("@thread".to_owned(), Line::To)],
                thread: Some(&found.id),
                reply_to: None,
                has_subject: true,
                urgent: false,
                ack_required: false,
                hold: false,
                recover: false,
            };
            let said = self.whole(|model| model.post(me, &draft));
            assert!(said.is_ok() || said == Err("RECIPIENT_NOT_FOUND".into()), "{said:?}");
        }
        self.event("thread_closed", me);
        self.threads.get_mut(&key).unwrap().done = true;
        self.agents.iter_mut().for_each(|agent| agent.thread = agent.thread.take().filter(|current| *current != key));
        Ok(found.id)
    }

    fn take_over(&mut self, me: Who, input: &release::Input) -> Outcome<Value> {
        let mut targets: Vec<Number> = Vec::new();
        for id in &input.id {
            self.live().find(|claim| claim.id == *id).ok_or("RESERVATION_NOT_HELD")?;
            targets.push(*id);
        }
        for pattern in &input.patterns {
            let theirs = self.live().filter(|claim| claim.pattern == *pattern && claim.holder != me);
            let theirs: Vec<Number> = theirs.map(|claim| claim.id).filter(|id| !targets.contains(id)).collect();
            if theirs.is_empty() {
                return Err("RESERVATION_NOT_HELD".into());
            }
            targets.extend(theirs);
        }
        let mut taken = Vec::new();
        let mut losses: Vec<(Who, Vec<Option<String>>)> = Vec::new();
        for id in targets {
            let holder = self.claims.iter().find(|claim| claim.id == id).unwrap().holder;
            if holder == me {
                return Err("INPUT_INVALID".into());
            }
            if self.is_alive(holder) {
                return Err("HOLDER_ALIVE".into());
            }
            self.event("reservation_taken", me);
            let now = self.now;
            let claim = self.claims.iter_mut().find(|claim| claim.id == id).unwrap();
            match losses.iter_mut().find(|(who, _)| *who == holder) {
                Some((_, reasons)) => reasons.push(claim.reason.clone()),
                None => losses.push((holder, vec![claim.reason.clone()])),
            }
            (claim.holder, claim.first, claim.expires) = (me, now, now + claim.ttl);
            claim.generation += 1;
            taken
                .push(json!({"id": id, "holder": me, "generation": claim.generation, "expires_at": at(claim.expires)}));
        }
        // Each holder is told once, where the work is talked about if that goes on.
        for (holder, reasons) in losses {
            let keys = reasons.into_iter().flatten().map(|reason| reason.to_ascii_lowercase());
            let goes_on = |key: &String| {
                let thread = self.threads.get(key).filter(|thread| !thread.done);
                let first = thread.and_then(|thread| self.message(thread.first?));
                first.is_some_and(|first| self.sees(me, first))
            };
            let place = keys.into_iter().find(goes_on);
            self.notice(holder, Line::To, place);
        }
        Ok(json!({"released": [], "taken": taken}))
    }
}

/// A pair as one side sees it; another mark is news.
fn mark(mine_exclusive: bool, theirs: &Claim) -> String {
    format!("{mine_exclusive} {} {}", theirs.exclusive, theirs.generation)
}

//! From forms to requests. Words become values here, as the command line makes them.

use relay_core::domain::message::Importance;
use relay_core::domain::name::{Address, AgentName, ThreadId};
use relay_core::domain::time::Span;
use relay_core::error::Code;
use relay_core::store::Result;
use relay_core::verbs::{Request, ack, link, release, send, standing};

use super::super::form::Form;

pub fn send(form: &Form) -> Result<Request> {
    let to = form.texts("to").flat_map(|text| text.split(',')).map(str::trim).filter(|name| !name.is_empty());
    let to: Vec<Address> = to.map(Address::parse).collect();
    if to.is_empty() && form.text("reply_to").is_none() {
        return Err(Code::InputInvalid.refuse("nobody is chosen: tick those who should get it, or name them"));
    }
    let importance = form.text("importance").unwrap_or(Importance::Normal.as_str());
    let importance = Importance::parse(importance).ok_or_else(|| {
        Code::InputInvalid.refuse(format!("a message is of low, normal, high or urgent importance, not {importance:?}"))
    })?;
    let ack_within = form.text("ack_within").map(|text| text.trim().parse::<Span>()).transpose()?;
    Ok(Request::Send(send::Input {
        to,
        subject: form.text("subject").map(|subject| subject.trim().to_owned()),
        body: form.lines("body").unwrap_or_default(),
        thread: form.text("thread").map(|id| ThreadId::parse(id.trim())).transpose()?,
        reply_to: form.number("reply_to")?,
        importance,
        // Whoever says by when asks for it, as `--ack-within` does.
        ack_required: form.has("ack_required") || ack_within.is_some(),
        ack_within,
        ..send::Input::default()
    }))
}

/// The message that is acknowledged along with a reply.
pub fn acked_along(form: &Form) -> Result<Option<ack::Input>> {
    let acked = form.number("ack")?;
    Ok(acked.map(|id| ack::Input { ids: vec![id], read: false }))
}

pub fn ack(form: &Form) -> Result<Request> {
    Ok(Request::Ack(ack::Input { ids: form.numbers("id")?, read: form.has("read") }))
}

pub fn link(form: &Form) -> Result<Request> {
    let answer = form.text("answer").unwrap_or_default();
    if !["accept", "block"].contains(&answer) {
        return Err(Code::InputInvalid
            .refuse(format!("a request for contact is answered with accept or block, not {answer:?}")));
    }
    Ok(Request::Link(link::Input {
        target: form.text("target").map(|target| Address::parse(target.trim())),
        id: form.number("id")?,
        accept: answer == "accept",
        block: answer == "block",
        ..link::Input::default()
    }))
}

/// The human holds nothing: what the human gives back is somebody's, who is told why.
pub fn release(form: &Form) -> Result<Request> {
    let (id, why) = (form.numbers("id")?, form.lines("why").unwrap_or_default());
    Ok(Request::Release(release::Input { id, force: true, why: Some(why), ..release::Input::default() }))
}

pub fn retire(form: &Form) -> Result<Request> {
    standing(form, standing::Action::Retire)
}

pub fn suspend(form: &Form) -> Result<Request> {
    standing(form, if form.has("lift") { standing::Action::Reinstate } else { standing::Action::Suspend })
}

fn standing(form: &Form, action: standing::Action) -> Result<Request> {
    let name = AgentName::parse(form.text("name").unwrap_or_default().trim())?;
    Ok(Request::Standing(standing::Input { action, name: Some(name) }))
}

#[cfg(test)]
mod tests {
    use relay_core::verbs::Request;
    use serde_json::{Value, json};

    use super::*;

    type Made = fn(&Form) -> Result<Request>;

    #[track_caller]
    fn check(made: Made, form: &str, expected: &Value) {
        let request = made(&Form::parse(form.as_bytes())).unwrap_or_else(|refusal| panic!("{form}: {refusal}"));
        let said = serde_json::to_value(request).unwrap_or_default();
        for (name, value) in expected.as_object().into_iter().flatten() {
            assert_eq!(&said[name], value, "{name} of {form}: {said}");
        }
    }

    #[test]
    fn what_is_typed_becomes_the_request_of_a_verb() {
        check(
            send,
            "to=BlueLake,+RedForest&to=GreenField&subject=+S+&body=a%0D%0Ab&thread=bd-1&ack_required=on&ack_within=2h&importance=high",
            &json!({"verb": "send", "to": ["BlueLake", "RedForest", "GreenField"], "subject": "S", "body": "a\nb", "thread": "bd-1",
                   "ack_required": true, "importance": "high"}),
        );
        check(send, "to=@all&body=b&ack_within=2h", &json!({"to": ["@all"], "ack_required": true, "ack_within": "2h"}));
        check(send, "to=@all&body=b&ack_within=", &json!({"ack_required": false, "ack_within": null}));
        check(send, "reply_to=128&body=b&to=&thread=", &json!({"to": [], "reply_to": 128, "thread": null}));
        check(ack, "id=1&id=%232", &json!({"verb": "ack", "ids": [1, 2], "read": false}));
        check(ack, "id=1&read=on", &json!({"read": true}));
        check(
            link,
            "target=Blue&id=5&answer=accept",
            &json!({"verb": "link", "target": "Blue", "id": 5, "accept": true, "block": false}),
        );
        check(link, "target=Blue&answer=block", &json!({"accept": false, "block": true}));
        check(release, "id=57&why=w", &json!({"verb": "release", "id": [57], "force": true, "why": "w"}));
        check(retire, "name=BlueLake", &json!({"verb": "standing", "action": "retire", "name": "BlueLake"}));
        check(suspend, "name=BlueLake", &json!({"action": "suspend"}));
        check(suspend, "name=BlueLake&lift=1", &json!({"action": "reinstate"}));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let cases: [(Made, &str); 8] = [
            (send, "to=&to=+,&body=b"),
            (send, "to=BlueLake&body=b&importance=huge"),
            (send, "to=BlueLake&body=b&thread=%2F%2F"),
            (send, "reply_to=seven&body=b"),
            (ack, "id=seven"),
            (link, "target=Blue&answer=maybe"),
            (retire, "name="),
            (suspend, "name=human"),
        ];
        for (made, form) in cases {
            assert!(made(&Form::parse(form.as_bytes())).is_err(), "{form}");
        }
    }
}

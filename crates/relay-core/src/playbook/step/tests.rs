use super::*;
use crate::error::Refusal;

fn printed(file: &str, refusal: &Refusal, setting: &Setting) -> Vec<Step> {
    let playbook: Playbook = toml::from_str(file).unwrap_or_else(|fault| panic!("{fault}"));
    steps(&playbook, refusal, setting)
}

fn setting() -> Setting {
    Setting {
        project: Some("/abs/repo".into()),
        agent: Some("BlueLake".into()),
        kept: Some("k1".into()),
        key: Some("k1".into()),
        verb: None,
    }
}

#[test]
fn a_step_is_the_same_as_argv_and_as_tool_call() {
    let file = r#"
        symptom = "s"
        [retry]
        [[step]]
        why = "ask {each}"
        unattended = true
        each = "ask"
        tool = "link"
        args = { target = "{each}" }
        after = { asked = "{each}" }
    "#;
    let refusal = Code::ContactRequired.refuse("x").with("ask", vec!["RedForest", "GreenHill"]);
    let steps = printed(file, &refusal, &setting());
    assert_eq!(steps.len(), 3);
    let expected = ["relay", "link", "--target", "RedForest", "--project", "/abs/repo", "--agent", "BlueLake"];
    assert_eq!(steps[0].run, expected);
    assert_eq!(steps[0].why, "ask RedForest");
    assert_eq!(steps[1].condition, Some(Condition::Asked("GreenHill".to_owned())));
    assert_eq!(steps[1].after.as_deref(), Some("GreenHill was asked for contact"));
    let args = json!({"target": "RedForest", "project": "/abs/repo", "agent": "BlueLake"});
    assert_eq!(serde_json::to_value(&steps[0].args).unwrap_or_default(), args);
    let retry = "relay recover CONTACT_REQUIRED --idempotency-key k1 --retry --project /abs/repo --agent BlueLake";
    assert_eq!(steps[2].run.join(" "), retry);
    assert_eq!(steps.iter().map(|step| step.step).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn a_step_without_its_value_does_not_apply() {
    let file = "symptom = \"s\"\n[[step]]\nwhy = \"see {id}\"\ntool = \"ack\"\nargs = { ids = [\"{id}\"] }";
    assert_eq!(printed(file, &Code::MessageNotFound.refuse("x"), &setting()), []);
    let with_id = Code::MessageNotFound.refuse("x").with("id", 7);
    let step = printed(file, &with_id, &setting()).remove(0);
    assert_eq!(step.run[..3], ["relay", "ack", "7"]);
    assert_eq!(step.args.map(|args| args["ids"].clone()), Some(json!(["7"])));
}

#[test]
fn a_step_may_ask_for_a_value_or_for_its_absence() {
    let file = "symptom = \"s\"\n[retry]\nwhen = \"own_blocks\"\n[[step]]\nwhy = \"a\"\nunless = \"own_blocks\"\nwho = \"you\"";
    let told = |refusal: Refusal| {
        printed(file, &refusal, &setting()).into_iter().map(|step| step.why).collect::<Vec<_>>().join(", ")
    };
    let again = "make the same request again";
    assert_eq!(told(Code::ContactBlocked.refuse("x")), "a");
    assert_eq!(told(Code::ContactBlocked.refuse("x").with("own_blocks", Vec::<String>::new())), "a", "none is none");
    assert_eq!(told(Code::ContactBlocked.refuse("x").with("own_blocks", vec!["RedForest"])), again);
}

#[test]
fn an_optional_value_is_left_out_where_it_is_missing() {
    let file = "symptom = \"s\"\n[[step]]\nwhy = \"w\"\ntool = \"reserve\"\nargs = { patterns = \"{patterns}\", shared = \"{shared?}\", ttl = \"{ttl?}\" }";
    let run = |refusal: Refusal| printed(file, &refusal, &Setting::default())[0].run.join(" ");
    let refusal = Code::FileReservationConflict.refuse("x").with("patterns", vec!["src"]);
    assert_eq!(run(refusal.clone()), "relay reserve src");
    assert_eq!(run(refusal.with("shared", true).with("ttl", "2h")), "relay reserve src --shared --ttl 2h");
}

#[test]
fn no_value_is_taken_for_a_flag() {
    let file = "symptom = \"s\"\n[retry]\n[[step]]\nwhy = \"w\"\ntool = \"reserve\"\nargs = { patterns = \"{patterns}\" }\nafter = { held = { patterns = \"{patterns}\", shared = \"{shared?}\" } }";
    let setting = Setting { kept: Some("-k9".into()), ..Setting::default() };
    let refusal = Code::FileReservationConflict.refuse("x").with("patterns", vec!["-x", "y"]);
    let steps = printed(file, &refusal, &setting);
    assert_eq!(steps[0].run, ["relay", "reserve", "./-x", "y"]);
    assert_eq!(steps[0].args.as_ref().map(|args| args["patterns"].clone()), Some(json!(["-x", "y"])));
    assert_eq!(
        steps[0].condition,
        Some(Condition::Held { patterns: vec!["-x".to_owned(), "y".to_owned()], shared: false })
    );
    assert_eq!(steps[1].run[3], "--idempotency-key=-k9");
}

#[test]
fn an_unkept_request_is_repeated_by_its_maker() {
    let setting = Setting { kept: None, ..setting() };
    let steps = printed("symptom = \"s\"\n[retry]", &Code::StoreFull.refuse("x"), &setting);
    assert_eq!(steps.len(), 1);
    assert!(steps[0].run.is_empty() && !steps[0].unattended && steps[0].who == Some(Who::You));
    assert_eq!(steps[0].why, "make the same request again with --idempotency-key k1");
    let setting = Setting { key: None, ..setting };
    let steps = printed("symptom = \"s\"\n[retry]", &Code::StoreFull.refuse("x"), &setting);
    assert_eq!(steps[0].why, "make the same request again");
}

#[test]
fn a_question_goes_to_the_human_or_beside_the_store() {
    let file = |rest: &str| {
        format!("symptom = \"s\"\n[[step]]\nwhy = \"w\"\nescalate = \"Is {{path}} full for {{agent}}?\"\n{rest}")
    };
    let refusal = Code::StoreFull.refuse("x").with("path", "/store");
    let mail = printed(&file(""), &refusal, &setting()).remove(0);
    let case = mail.escalation.as_ref().map(|escalation| escalation.case.clone()).unwrap_or_default();
    assert!(case.starts_with("STORE_FULL.") && case.len() == 19, "{case}");
    assert_eq!(mail.condition, Some(Condition::Asks(case.clone())));
    let args = mail.args.unwrap_or_default();
    assert_eq!(args["to"], json!(["human"]));
    assert_eq!((&args["thread"], &args["subject"]), (&json!(case), &json!("STORE_FULL stops BlueLake")));
    assert_eq!((&args["body"], &args["ack_required"]), (&json!("Is /store full for BlueLake?"), &json!(true)));
    let note = printed(&file("beside = true"), &refusal, &setting()).remove(0);
    assert_eq!(note.run[..6], ["relay", "recover", "STORE_FULL", "--escalate", "--set", "path=/store"]);
    assert_eq!(note.condition, Some(Condition::Noted(case.clone())), "the same question has the same name");
    let human = Setting { agent: Some("human".into()), ..setting() };
    let human = printed(&file(""), &refusal, &human).remove(0);
    assert!(human.run.is_empty() && human.who == Some(Who::Person), "the human asks nobody");
    let nobody = printed(&file(""), &refusal, &Setting::default()).remove(0);
    assert_eq!(nobody.tool.as_deref(), Some("recover"), "without an agent there is nobody to write");
    let other = printed(&file(""), &Code::StoreFull.refuse("x").with("path", "/other"), &setting()).remove(0);
    assert_eq!(other.escalation.map(|escalation| escalation.case), Some(case), "of a store there is one of each class");
    let question = |name: &str| {
        let file = "symptom = \"s\"\n[[step]]\nwhy = \"w\"\nescalate = \"Where is {name}?\"";
        let step = printed(file, &Code::InboxFull.refuse("x").with("name", name), &setting()).remove(0);
        step.escalation.map(|escalation| escalation.case)
    };
    assert_ne!(question("RedForest"), question("GreenHill"), "another question has another name");
}

#[test]
fn what_is_between_braces_in_a_value_stays_there() {
    let file =
        "symptom = \"s\"\n[[step]]\nwhy = \"see {pattern}\"\ntool = \"reserve\"\nargs = { patterns = [\"{pattern}\"] }";
    let hostile = "src/{agent}; rm -rf $(x) {project}";
    let step = printed(file, &Code::HolderAlive.refuse("x").with("pattern", hostile), &setting()).remove(0);
    assert_eq!(step.run[..3], ["relay", "reserve", hostile], "a value is filled in once, and is one word");
    assert_eq!(step.why, format!("see {hostile}"));
}

//! The embedded files, one for each error class. The build has held each of them to its rules.

use super::file::Playbook;
use crate::error::Code;

include!(concat!(env!("OUT_DIR"), "/playbooks.rs"));

/// The playbook of a class.
pub fn playbook(code: Code) -> Playbook {
    toml::from_str(text(code)).unwrap_or_else(|fault| Playbook {
        symptom: format!("the playbook of {code} does not parse: {fault}"),
        retry: None,
        step: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::surface::takes;
    use super::*;

    #[track_caller]
    fn check(file: &str, expected: &[&str]) {
        let playbook: Playbook = toml::from_str(file).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(playbook.faults(&["name", "ask"], takes), expected, "{file}");
    }

    #[test]
    fn a_file_that_breaks_a_rule_is_told_what_is_wrong_with_it() {
        const STEP: &str = "symptom = \"s\"\n[retry]\n[[step]]\nwhy = \"w\"\n";
        let with = |rest: &str| format!("{STEP}{rest}");
        let link = "tool = \"link\"\nargs = { target = \"{name}\" }\nafter = { asked = \"{name}\" }";
        check(&with(link), &[]);
        check(&with(&format!("{link}\nwho = \"you\"")), &[]);
        check(
            &with(&format!("{link}\nwho = \"person\"")),
            &["step 1: it is exactly one of tool, command, escalate and who"],
        );
        check(&with(&link.replace("link", "lnik")), &["step 1: there is no command \"lnik\""]);
        check(&with(&link.replace("target", "to")), &["step 1: `link` takes no \"to\""]);
        check(&with(&link.replace("asked", "was_asked")), &["step 1: there is no condition \"was_asked\""]);
        check(
            &with(&link.replace("asked = \"{name}\"", "store = \"sonud\"")),
            &["step 1: \"store\" is about something else"],
        );
        let fields = link.replace("asked = \"{name}\"", "bound = \"{name}\"");
        check(&with(&fields), &["step 1: \"bound\" is about something else"]);
        let strange = "step 1: no error of this class carries \"nmae\"";
        check(&with(&link.replace("{name}", "{nmae}")), &[strange, strange]);
        check(&with("who = \"you\"\nunattended = true"), &["step 1: what somebody does is not unattended"]);
        check(&with("tool = \"link\""), &["step 1: it does not say what must be true afterwards"]);
        check(&with("beside = true\nwho = \"you\""), &["step 1: only a question goes beside the store"]);
        check(&with(""), &["step 1: it is exactly one of tool, command, escalate and who"]);
        check(&with("who = \"you\"\neach = \"them\""), &["step 1: no error of this class carries \"them\""]);
        check("symptom = \"s\"", &["it ends neither in a retry nor with somebody who decides"]);
        check(
            "symptom = \"\"\n[retry]\nwhen = \"it\"",
            &["it has no symptom", "no error of this class carries \"it\""],
        );
        let unclosed = "symptom = \"s\"\n[[step]]\nwhy = \"see {name\"\nwho = \"you\"";
        check(unclosed, &["step 1: no error of this class carries \"{name\""]);
    }

    #[test]
    fn every_class_has_a_playbook_that_leads_somewhere() {
        for code in Code::ALL {
            let playbook = playbook(*code);
            assert_eq!(playbook.faults(code.details(), takes), Vec::<String>::new(), "{code}");
            assert!(!code.is_retryable() || playbook.retry.is_some(), "{code} can succeed, and nothing tries it");
        }
    }
}

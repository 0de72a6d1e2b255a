//! The answer of one process: what it must hold, and lines filled from it.

use relay_core::domain::plain::escape_line;
use relay_core::domain::shell;
use relay_core::error::Code;
use relay_core::store::Result;
use serde_json::Value;

#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub agent: String,
    /// The command as a person would type it.
    pub run: Vec<String>,
    pub status: i32,
    pub answer: Value,
}

impl Reply {
    /// Exactly one line of JSON, and the exit status that goes with it.
    pub fn read(agent: &str, run: Vec<String>, output: &std::process::Output) -> Result<Self> {
        let line = shell::line(&run);
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let answer = match stdout.lines().collect::<Vec<_>>()[..] {
            [only] => serde_json::from_str(only).ok(),
            _ => None,
        };
        let answer = answer.ok_or_else(|| {
            let came = format!("{stdout}{stderr}");
            Code::Internal
                .refuse(format!("`{line}` by {agent}: expected one line of JSON, and came {:?}", clipped(&came)))
        })?;
        Ok(Reply { agent: agent.to_owned(), run, status: output.status.code().unwrap_or(-1), answer })
    }

    fn surprise(&self, expected: &str, came: &str) -> relay_core::error::Refusal {
        Code::Internal.refuse(format!(
            "`{}` by {}: expected {expected}, and came {}",
            shell::line(&self.run),
            self.agent,
            clipped(came)
        ))
    }

    pub fn success(self) -> Result<Self> {
        if self.status == 0 && self.answer["ok"] == true {
            return Ok(self);
        }
        let came = format!("status {}, {}", self.status, self.answer);
        Err(self.surprise("a success", &came))
    }

    /// Failed with this class and its exit status.
    pub fn fails(self, code: Code) -> Result<Self> {
        let status = i32::from(code.kind().exit_status());
        if self.status == status && self.answer["error"]["code"] == code.as_str() {
            return Ok(self);
        }
        let came = format!("status {}, {}", self.status, self.answer);
        Err(self.surprise(&format!("{code} and status {status}"), &came))
    }

    /// Holds exactly this value there.
    pub fn expect(self, pointer: &str, expected: impl Into<Value>) -> Result<Self> {
        let (expected, came) = (expected.into(), self.value(pointer)?);
        if *came == expected {
            return Ok(self);
        }
        Err(self.surprise(&format!("{expected} at {pointer}"), &came.to_string()))
    }

    pub fn value(&self, pointer: &str) -> Result<&Value> {
        let found = self.answer.pointer(pointer).filter(|value| !value.is_null());
        found.ok_or_else(|| self.surprise(&format!("a value at {pointer}"), &self.answer.to_string()))
    }

    pub fn list(&self, pointer: &str) -> Result<&[Value]> {
        let value = self.value(pointer)?;
        value
            .as_array()
            .map(Vec::as_slice)
            .ok_or_else(|| self.surprise(&format!("a list at {pointer}"), &value.to_string()))
    }

    /// A command that the answer holds, as it was printed.
    pub fn command(&self, pointer: &str) -> Result<Vec<String>> {
        self.list(pointer)?
            .iter()
            .map(|word| word.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| self.surprise(&format!("a command at {pointer}"), &self.answer.to_string()))
    }

    /// Replaces each `{/pointer}` of a template by the value there. A line without any quotes nothing and is refused.
    pub fn fill(&self, template: &str) -> Result<String> {
        self.fill_from(&self.answer, template)
    }

    /// One line for each element of a list.
    pub fn fill_each(&self, pointer: &str, template: &str) -> Result<Vec<String>> {
        self.list(pointer)?.iter().map(|element| self.fill_from(element, template)).collect()
    }

    fn fill_from(&self, value: &Value, template: &str) -> Result<String> {
        let mut filled = String::new();
        let mut pieces = template.split('{');
        filled.push_str(pieces.next().unwrap_or_default());
        let mut quotes = 0;
        for piece in pieces {
            let (pointer, rest) = piece.split_once('}').unwrap_or((piece, ""));
            let found = value.pointer(pointer).filter(|found| !found.is_null());
            let found = found.ok_or_else(|| self.surprise(&format!("a value at {pointer}"), &value.to_string()))?;
            filled.push_str(&escape_line(&shown(found)));
            filled.push_str(rest);
            quotes += 1;
        }
        if quotes == 0 {
            return Err(Code::Internal.refuse(format!("the line {template:?} quotes nothing")));
        }
        Ok(filled)
    }
}

/// A value as people read it: a text without its quotes, a command as one types it.
fn shown(value: &Value) -> String {
    let words =
        |list: &Vec<Value>| list.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => words(list).map_or_else(|| value.to_string(), |words| shell::line(&words)),
        other => other.to_string(),
    }
}

/// Enough of a text to see what is wrong with it.
fn clipped(text: &str) -> String {
    const MOST: usize = 600;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    format!("{} …", text.chars().take(MOST).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(answer: &str) -> Reply {
        let answer = serde_json::from_str(answer).unwrap_or_default();
        Reply { agent: "BlueLake".into(), run: vec!["relay".into(), "poll".into()], status: 0, answer }
    }

    fn check(answer: &str, template: &str, expected: Option<&str>) {
        assert_eq!(reply(answer).fill(template).ok().as_deref(), expected, "{template}");
    }

    #[test]
    fn a_line_is_filled_from_the_answer_or_not_at_all() {
        check(r#"{"result":{"id":7}}"#, "sent #{/result/id}", Some("sent #7"));
        check(r#"{"a":"x","b":true}"#, "{/a} is {/b}.", Some("x is true."));
        check(r#"{"run":["relay","ack","two words"]}"#, "{/run}", Some("relay ack 'two words'"));
        check(r#"{"a":"\u001b[31m"}"#, "{/a}", Some("\\u{1b}[31m"));
        check(r#"{"a":null}"#, "{/a}", None);
        check(r#"{}"#, "{/a}", None);
        check(r#"{"a":1}"#, "known beforehand", None);
    }

    #[test]
    fn an_answer_must_be_what_the_play_expects() {
        let ok = || reply(r#"{"ok":true,"result":{"id":7}}"#);
        assert!(ok().success().and_then(|reply| reply.expect("/result/id", 7)).is_ok());
        assert!(ok().expect("/result/id", 8).is_err());
        assert!(ok().fails(Code::ContactBlocked).is_err());
        assert!(reply(r#"{"ok":false}"#).success().is_err());
        assert!(Reply { status: 70, ..ok() }.success().is_err());
    }
}

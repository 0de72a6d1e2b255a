//! A command as the call of the tool that does the same: for whoever has tools and no shell.

use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};
use serde_json::{Map, Value};

use super::Cli;
use super::tools::{self, Tool};

/// The commands that are a noun of `look`, with that noun.
const NOUNS: [(&str, &str); 7] = [
    ("thread", "thread"),
    ("message", "message"),
    ("agents", "agents"),
    ("reservations", "reservations"),
    ("search", "search"),
    ("status", "status"),
    ("log", "events"),
];

/// A tool and what it is called with.
pub struct Call {
    pub tool: String,
    pub arguments: Map<String, Value>,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tool)?;
        if self.arguments.is_empty() { Ok(()) } else { write!(f, " {}", Value::Object(self.arguments.clone())) }
    }
}

/// The call that a command means; none where no tool does it. What the command still lacks the call lacks too.
pub fn call(argv: &[String]) -> Option<Call> {
    // Building it takes longer than using it.
    static CLI: LazyLock<Mutex<clap::Command>> = LazyLock::new(|| Mutex::new(Cli::command().ignore_errors(true)));
    if argv.first().is_none_or(|program| program != "relay") {
        return None;
    }
    let mut cli = CLI.lock().unwrap_or_else(PoisonError::into_inner);
    let matches = cli.try_get_matches_from_mut(argv).ok()?;
    let (name, matches) = matches.subcommand()?;
    let command = cli.find_subcommand(name)?;
    let noun = NOUNS.iter().find(|(command, _)| *command == name).map(|(_, noun)| *noun);
    let tool = tools::find(noun.map_or(name, |_| "look"))?;
    let mut arguments = Map::new();
    let mut what: Vec<Value> = noun.map(Value::from).into_iter().collect();
    for argument in command.get_arguments().filter(|argument| is_said(matches, argument)) {
        let words = matches.get_raw(argument.get_id().as_str()).into_iter().flatten();
        let words = words.map(|word| word.to_str().map(str::to_owned)).collect::<Option<Vec<String>>>()?;
        if noun.is_some() && argument.is_positional() {
            what.extend(words.into_iter().map(Value::from));
        } else {
            let name = argument.get_long().unwrap_or(argument.get_id().as_str()).replace('-', "_");
            arguments.insert(name.clone(), value(tool, &name, &words)?);
        }
    }
    if !what.is_empty() {
        arguments.insert("what".to_owned(), what.into());
    }
    Some(Call { tool: tool.told.name.to_owned(), arguments })
}

fn is_said(matches: &ArgMatches, argument: &clap::Arg) -> bool {
    // Help and version are no values.
    let id = argument.get_id().as_str();
    matches.try_contains_id(id).unwrap_or(false) && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// As the tool's schema wants it, or none where it takes no such argument. A word that stands for a value stays a word.
fn value(tool: &Tool, name: &str, words: &[String]) -> Option<Value> {
    let property = tool.told.schema.get("properties")?.get(name)?;
    let one = |kind: &Value, word: &String| match kind.as_str() {
        Some("integer") => word.parse::<u64>().map_or_else(|_| Value::from(word.as_str()), Value::from),
        Some("boolean") => Value::from(true),
        // There is no standard input: the text is the caller's to say.
        _ if (name, word.as_str()) == ("body", "-") => Value::from("BODY"),
        _ => Value::from(word.as_str()),
    };
    match property.get("items") {
        Some(items) => Some(words.iter().map(|word| one(&items["type"], word)).collect()),
        None => words.first().map(|word| one(&property["type"], word)),
    }
}

/// What a tool can be called with: what a model has instead of a command's help.
pub fn usage(name: &str) -> Option<String> {
    let tool = tools::find(name)?;
    let needs: Vec<&str> = tool
        .told
        .schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let needs = if needs.is_empty() { String::new() } else { format!(" and needs {}", needs.join(", ")) };
    Some(format!("{name} takes {}{needs}", tools::takes(tool)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use relay_core::domain::shell;

    use super::*;

    fn spoken(line: &str) -> Option<String> {
        call(&shell::words(line).unwrap_or_default()).map(|call| call.to_string())
    }

    #[test]
    fn a_command_is_told_as_the_call_that_does_the_same() {
        let check = |line: &str, expected: &str| {
            assert_eq!(spoken(line).as_deref(), Some(expected), "{line}");
        };
        check("relay start", "start");
        check("relay prepare --thread THREAD", r#"prepare {"thread":"THREAD"}"#);
        check(
            "relay link --target RedForest --project '/a b' --agent BlueLake",
            r#"link {"agent":"BlueLake","project":"/a b","target":"RedForest"}"#,
        );
        check("relay ack 7 8", r#"ack {"ids":[7,8]}"#);
        check("relay poll --bodies --after 9", r#"poll {"after":9,"bodies":true}"#);
        check(
            "relay send --to A1,B1 --thread bd-1 --reply-to 7 --body -",
            r#"send {"body":"BODY","reply_to":7,"thread":"bd-1","to":["A1,B1"]}"#,
        );
        check("relay release --id 7 --force --why WHY", r#"release {"force":true,"id":[7],"why":"WHY"}"#);
        check("relay reserve 'src/**' ./-x --ttl 2h", r#"reserve {"patterns":["src/**","./-x"],"ttl":"2h"}"#);
        check(
            "relay recover STORE_BUSY --retry --idempotency-key k",
            r#"recover {"code":"STORE_BUSY","idempotency_key":"k","retry":true}"#,
        );
        check("relay look message N", r#"look {"what":["message","N"]}"#);
        check("relay agents", r#"look {"what":["agents"]}"#);
        check("relay thread bd-1 --limit 3", r#"look {"limit":3,"what":["thread","bd-1"]}"#);
        check("relay reservations src/a.rs", r#"look {"what":["reservations","src/a.rs"]}"#);
        check("relay search login token", r#"look {"what":["search","login","token"]}"#);
        check("relay log --by BlueLake", r#"look {"by":"BlueLake","what":["events"]}"#);
        // What is mentioned without all that it needs is mentioned likewise.
        check("relay reserve", "reserve");
        check("relay send --to human", r#"send {"to":["human"]}"#);
    }

    #[test]
    fn what_no_tool_does_is_no_call() {
        for line in [
            "relay recover STORE_DAMAGED --yes",
            "relay drain --wait",
            "relay suspend BlueLake",
            "relay log --oneline",
            "relay start --json",
            "relay send --help",
            "git log",
            "",
        ] {
            assert_eq!(spoken(line), None, "{line}");
        }
    }

    #[test]
    fn a_call_is_the_request_that_the_command_makes() {
        for line in [
            "relay start --task 'a b' --path 'src/**' --take-over",
            "relay poll --from RedForest --wait 10m --limit 5",
            "relay send --to RedForest,GreenHill --thread bd-1 --subject 'it'\\''s' --body $'a\\nb' --ack-within 1h",
            "relay link --target RedForest@/abs/other --accept",
            "relay release 'src/**' --keep src/a.rs --renew 1h",
            "relay look events --kind message_sent,mail_acked --since 2h",
        ] {
            let words = shell::words(line).unwrap_or_default();
            let call = call(&words).unwrap_or_else(|| panic!("{line}"));
            let typed = Cli::try_parse_from(&words).unwrap_or_else(|fault| panic!("{line}: {fault}")).request();
            let called = tools::find(&call.tool).map(|tool| tools::request(tool, &call.arguments));
            assert_eq!(called.and_then(Result::ok), typed.and_then(Result::ok), "{line}");
        }
    }
}

//! What can be done next, in the words of whoever reads it: commands for a shell, calls for one who has tools only.

use relay_core::domain::plain::escape_line;
use relay_core::domain::shell;
use relay_core::playbook::Step;
use relay_server::Speech;
use serde_json::Value;

use crate::cli::calls::{self, Call};

/// A command that the answer proposes.
pub fn proposal(line: &str, speech: Speech) -> String {
    escape_line(&match speech {
        Speech::Commands => line.to_owned(),
        Speech::Tools => called(line),
    })
}

/// What a step runs; none where somebody does it.
pub fn step(step: &Step, speech: Speech) -> Option<String> {
    let call = step.tool.clone().zip(step.args.clone()).map(|(tool, arguments)| Call { tool, arguments });
    let told = match (speech, call) {
        _ if step.run.is_empty() => return None,
        (Speech::Tools, Some(call)) => call.to_string(),
        (Speech::Tools, None) => in_a_shell(&shell::line(&step.run)),
        (Speech::Commands, _) => shell::line(&step.run),
    };
    Some(escape_line(&told))
}

/// A sentence of relay's own, with the commands that it names between backticks.
pub fn sentence(text: &str, speech: Speech) -> String {
    let text = escape_line(text);
    if speech == Speech::Commands || !text.contains("`relay ") {
        return text;
    }
    let pieces = text.split('`').enumerate();
    let told = pieces.map(|(index, piece)| match piece.starts_with("relay ") && index % 2 == 1 {
        true => mentioned(piece),
        false => piece.to_owned(),
    });
    told.collect::<Vec<String>>().join("`")
}

fn called(line: &str) -> String {
    if let Some(name) = line.strip_prefix("export RELAY_AGENT=") {
        return format!("say agent {} in every call", Value::from(name));
    }
    let call = shell::words(line).and_then(|words| calls::call(&words));
    call.map_or_else(|| in_a_shell(line), |call| call.to_string())
}

fn mentioned(command: &str) -> String {
    let words = shell::words(command).unwrap_or_default();
    let help = match words.as_slice() {
        [_, verb, flag] if flag == "--help" => calls::usage(verb),
        _ => None,
    };
    help.or_else(|| calls::call(&words).map(|call| call.to_string())).unwrap_or_else(|| command.to_owned())
}

/// What no tool does somebody does who has a shell.
fn in_a_shell(line: &str) -> String {
    format!("in a shell: {line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proposal_is_told_in_the_words_of_whoever_reads_it() {
        let check = |line: &str, expected: &str| {
            assert_eq!(proposal(line, Speech::Tools), expected, "{line}");
            assert_eq!(proposal(line, Speech::Commands), line);
        };
        check("relay ack 7", r#"ack {"ids":[7]}"#);
        check("export RELAY_AGENT=BlueLake", r#"say agent "BlueLake" in every call"#);
        check("relay recover STORE_DAMAGED --yes", "in a shell: relay recover STORE_DAMAGED --yes");
    }

    #[test]
    fn a_sentence_names_calls_where_it_named_commands() {
        let check = |text: &str, expected: &str| {
            assert_eq!(sentence(text, Speech::Tools), expected, "{text}");
            assert_eq!(sentence(text, Speech::Commands), text);
        };
        check("`relay agents` shows who is there", r#"`look {"what":["agents"]}` shows who is there"#);
        check("letters, `_` and `-`", "letters, `_` and `-`");
        check("see `relay ack --help`", "see `ack takes agent, idempotency_key, ids, project, read and needs ids`");
        check("a person runs `relay project move OLD NEW`", "a person runs `relay project move OLD NEW`");
        check("relay is `relay ", "relay is `relay ");
    }
}

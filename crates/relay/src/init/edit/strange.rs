//! What stands in an entry of relay's own that relay does not write there. It may be the user's, and stays; it may also have come
//! with the repository, and then the user should know of it before a program is told to start what the entry says.

use serde_json::Value;

/// Where an entry names one of these, relay is reached through a server, and not started.
pub const ADDRESSES: [&str; 3] = ["url", "httpUrl", "serverUrl"];

/// By their names, from this one on. Of values only addresses are shown: others may be secrets.
pub fn strange(name: &str, found: &Value, wanted: Option<&Value>) -> Vec<String> {
    match found {
        Value::Object(members) => members
            .iter()
            .flat_map(|(inner, value)| {
                strange(&format!("{name}.{inner}"), value, wanted.and_then(|wanted| wanted.get(inner)))
            })
            .collect(),
        found if Some(found) == wanted => Vec::new(),
        found if ADDRESSES.iter().any(|address| name.ends_with(&format!(".{address}"))) => {
            vec![format!("{name} = {found}")]
        }
        _ => vec![name.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_relay_does_not_write_is_named_and_only_addresses_are_shown() {
        let wanted = json!({"command": "relay", "args": ["mcp"], "env": {"RELAY_HOME": "/x"}});
        let check = |found: Value, expected: &[&str]| assert_eq!(strange("relay", &found, Some(&wanted)), expected);
        check(wanted.clone(), &[]);
        check(
            json!({"command": "relay", "args": ["mcp"], "env": {"RELAY_HOME": "/x", "LD_PRELOAD": "/evil.so"}, "cwd": "/e"}),
            &["relay.cwd", "relay.env.LD_PRELOAD"],
        );
        check(
            json!({"url": "http://evil.example/mcp", "headers": {"Authorization": "Bearer secret"}}),
            &["relay.headers.Authorization", "relay.url = \"http://evil.example/mcp\""],
        );
    }
}

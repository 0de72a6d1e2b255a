use jsonc_parser::json;
use proptest::prelude::*;

use super::*;

fn server() -> Wish {
    Wish::Member { under: vec!["mcpServers"], name: "relay", value: json!({"command": "relay", "args": ["mcp"]}) }
}

fn hook(timeout: u32) -> Json {
    json!({"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "relay hook", "timeout": timeout}]})
}

fn hooks() -> Wish {
    Wish::Hooks { program: "relay".to_owned(), events: vec![("PreToolUse", hook(10)), ("Stop", hook(10))] }
}

fn names() -> Wish {
    Wish::Word {
        under: vec!["context"],
        name: "fileName",
        before: vec!["GEMINI.md"],
        word: "AGENTS.md".to_owned(),
        folder: None,
    }
}

fn put_in(wishes: &[Wish], text: &str) -> String {
    let put = put(wishes, text).unwrap_or_else(|fault| panic!("{text:?} {fault}"));
    assert_eq!(gaps(wishes, &put), Ok(Vec::new()), "{put}");
    assert_eq!(super::put(wishes, &put), Ok(put.clone()), "twice: {text:?}");
    put
}

/// Everything that was there is there, in its order, and taking out again gives `back`.
#[track_caller]
fn check(wish: &Wish, text: &str, back: &str) {
    let wishes = std::slice::from_ref(wish);
    let put = put_in(wishes, text);
    // A comma joins the line before what is new.
    let without_commas = put.replace(',', "");
    let mut rest = without_commas.as_str();
    for line in text.replace(',', "").lines().map(str::trim).filter(|line| line.len() > 2) {
        let at = rest.find(line).unwrap_or_else(|| panic!("{line:?} is lost or out of order in {put}"));
        rest = &rest[at + line.len()..];
    }
    assert_eq!(take(wishes, &put).as_deref(), Ok(back), "back from {put}");
}

/// The same, where what is left is what was there.
#[track_caller]
fn check_same(wish: &Wish, text: &str) {
    check(wish, text, text);
}

#[test]
fn an_entry_is_put_in_and_taken_out_again() {
    let expected = "{\n  \"mcpServers\": {\n    \"relay\": {\n      \"command\": \"relay\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}\n";
    for empty in ["", "{}\n", "{\n}\n"] {
        assert_eq!(put_in(&[server()], empty), expected);
    }
    check_same(&server(), "{}\n");
    check_same(&server(), "{}");
    check_same(&server(), "{\n  \"a\": 1 // why\n}\n");
    check_same(&server(), "{\n\t\"mcpServers\": {\n\t\t\"x\": {} // why\n\t},\n\t\"b\": [1,2]\n}\n");
    check_same(&server(), "{\r\n    \"mcpServers\": {\r\n        \"x\": {}\r\n    }\r\n}\r\n");
    check_same(&server(), "{\n  \"mcpServers\": {\n    \"x\": 1, // c\n    // after\n  },\n}");
    check_same(&server(), "// head\n{\n  // in\n}\n// tail\n");
    check(&server(), "{\n  \"mcpServers\": {\n  }\n}\n", "{}\n");
    let line = "{\"a\":1,\"mcpServers\":{\"x\":2}}";
    let left = take(&[server()], &put_in(&[server()], line));
    assert_eq!(
        left.as_deref(),
        Ok("{\"a\":1,\"mcpServers\":{\n    \"x\":2\n  }}"),
        "the object that got an entry got lines"
    );
}

#[test]
fn line_ends_and_indentation_are_those_of_the_file() {
    let with = put_in(&[server()], "{\r\n\t\"a\": 1\r\n}\r\n");
    assert!(with.starts_with("{\r\n\t\"a\": 1,\r\n\t\"mcpServers\": {\r\n\t\t\"relay\": {\r\n"), "{with:?}");
    assert_eq!(with.matches('\n').count(), with.matches("\r\n").count());
    let with = put_in(&[server()], "{\n    \"a\": 1\n}");
    assert!(with.contains("\n    \"mcpServers\": {\n        \"relay\"") && with.ends_with('}'), "{with:?}");
}

#[test]
fn an_entry_that_is_there_is_updated_and_keeps_what_was_added() {
    let old = r#"{"mcpServers": {"relay": {"command": "/old/relay", "args": ["mcp"], "env": {"A": "b"}}, "x": {}}}"#;
    let with = put_in(&[server()], old);
    assert_eq!(with, old.replace("/old/relay", "relay"));
    let with_env = json!({"command": "relay", "env": {"RELAY_HOME": "/state"}});
    let wish = Wish::Member { under: vec!["mcpServers"], name: "relay", value: with_env };
    let with = put_in(&[wish], r#"{"mcpServers": {"relay": {"command": "relay", "env": {"A": "b"}}}}"#);
    assert!(with.contains("\"A\": \"b\"") && with.contains("\"RELAY_HOME\": \"/state\""), "{with}");
    let served = r#"{"mcpServers": {"relay": {"type": "http", "url": "http://127.0.0.1:7717/mcp"}}}"#;
    assert_eq!(put_in(&[server()], served), served, "somebody reaches relay through a server");
    assert_eq!(take(&[server()], served).as_deref(), Ok(served));
}

#[test]
fn hooks_stand_behind_those_of_others() {
    let theirs = "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\", // mine\n        \"hooks\": [{ \"type\": \"command\", \"command\": \"./lint.sh\" }]\n      }\n    ]\n  }\n}\n";
    check_same(&hooks(), theirs);
    let with: Value = serde_json::from_str(&put_in(&[hooks()], &theirs.replace(" // mine", ""))).unwrap_or_default();
    let groups = &with["hooks"]["PreToolUse"];
    assert_eq!(groups[0]["hooks"][0]["command"], "./lint.sh");
    assert_eq!(groups[1], plain(&hook(10)));
    check(&hooks(), "{\n  \"hooks\": {\n    \"PreToolUse\": [\n    ]\n  }\n}\n", "{}\n");
    check_same(&hooks(), "{\n  \"model\": \"x\"\n}\n");
}

#[test]
fn older_hooks_of_relays_are_replaced_in_their_place() {
    let old = r#"{"hooks": {
      "PreToolUse": [
        {"hooks": [{"type": "command", "command": "/old/place/relay hook"}]},
        {"hooks": [{"type": "command", "command": "a"}]},
        {"hooks": [{"type": "command", "command": "relay", "args": ["hook"]}]},
        {"matcher": "X", "hooks": [{"type": "command", "command": "'/with space/relay' hook"}, {"type": "command", "command": "b"}]}
      ],
      "Gone": [{"command": "relay hook --idle"}, {"command": "exec /x/relay hook 2>/dev/null"}],
      "Other": [{"command": "relay status"}, {"bash": "relay hooks"}, {"command": "xrelay hook"}]
    }}"#;
    let with: Value = serde_json::from_str(&put_in(&[hooks()], old)).unwrap_or_default();
    let hooks = &with["hooks"];
    assert_eq!(hooks["PreToolUse"].as_array().map(Vec::len), Some(3), "{with:#}");
    assert_eq!(hooks["PreToolUse"][0], plain(&hook(10)));
    assert_eq!(hooks["PreToolUse"][1]["hooks"][0]["command"], "a");
    assert_eq!(hooks["PreToolUse"][2]["hooks"].as_array().map(Vec::len), Some(1), "what others put beside it stays");
    assert!(hooks.get("Gone").is_none(), "an event that relay no longer wants");
    assert_eq!(hooks["Other"].as_array().map(Vec::len), Some(3), "commands that only look like it");
}

#[test]
fn hooks_without_groups_are_known_too() {
    let wish =
        Wish::Hooks { program: "relay".to_owned(), events: vec![("preToolUse", json!({"command": "relay hook"}))] };
    let old = r#"{"version": 1, "hooks": {"preToolUse": [{"command": "a"}, {"bash": "/x/relay hook"}]}}"#;
    let with: Value = serde_json::from_str(&put_in(&[wish], old)).unwrap_or_default();
    assert_eq!(with["hooks"]["preToolUse"], serde_json::json!([{"command": "a"}, {"command": "relay hook"}]));
}

#[test]
fn a_word_joins_a_list_or_makes_one() {
    check_same(&names(), "{}\n");
    check_same(&names(), "{\n  \"context\": {\n    \"fileName\": [\n      \"A.md\"\n    ]\n  }\n}\n");
    let line = "{\"context\": {\"fileName\": [\"A.md\"]}}";
    assert_eq!(take(&[names()], &put_in(&[names()], line)).as_deref(), Ok(line));
    assert!(put_in(&[names()], "{}").contains("[\"GEMINI.md\", \"AGENTS.md\"]"));
    assert!(put_in(&[names()], r#"{"context": {"fileName": "MY.md"}}"#).contains("[\"MY.md\", \"AGENTS.md\"]"));
    let there = r#"{"context": {"fileName": "AGENTS.md"}}"#;
    assert_eq!(put_in(&[names()], there), there);
    assert!(put(&[names()], r#"{"context": {"fileName": 3}}"#).is_err());
}

#[test]
fn what_a_file_needs_is_put_in_once_and_makes_no_file_of_somebodys() {
    let wishes = [Wish::Needed { name: "version", value: json!(1) }, server()];
    let made = put_in(&wishes, "");
    assert!(made.starts_with("{\n  \"version\": 1,\n  \"mcpServers\""), "{made}");
    let left = take(&wishes, &made).unwrap_or_default();
    assert!(is_hollow(&wishes, &left), "{left}");
    assert_eq!(put_in(&wishes, "{\"version\": 2}").matches("version").count(), 1);
    for somebodys in ["{\"a\": 1}", "{\n  // mine\n}", "// mine\n{}", "[]", "{"] {
        assert!(!is_hollow(&wishes, somebodys), "{somebodys}");
    }
}

#[test]
fn what_cannot_be_read_is_left_alone() {
    for text in [
        "{",
        "[]",
        "{\"a\": }",
        "{'a': 1}",
        "{\"mcpServers\": []}",
        "{\"mcpServers\": null}",
        "{a: 1}",
        "{\"a\":1 \"b\":2}",
    ] {
        assert!(put(&[server()], text).is_err(), "{text}");
    }
    let fault = put(&[hooks()], "{\"hooks\": {\"Stop\": {}}}").err();
    assert_eq!(fault.as_deref(), Some("has something else than a list in `hooks.Stop`"));
    // Which of two members of one name counts is for the program to say; relay does not claim that it is in.
    let twice = put(&[server()], "{\"mcpServers\": {}, \"mcpServers\": {}}").unwrap_or_default();
    assert_ne!(gaps(&[server()], &twice), Ok(Vec::new()), "{twice}");
}

/// Any JSON, some levels deep.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~é\\n\"]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z{}\\[\\],:/*]{0,4}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever else is in a file means the same with relay's part in it, and without it again.
    #[test]
    fn everything_else_means_what_it_meant(
        others in proptest::collection::btree_map("[a-z]{1,4}", anything(), 0..4),
        servers in proptest::collection::btree_map("[a-z]{1,3}", anything(), 1..3),
        spread in any::<bool>(),
        returns in any::<bool>(),
    ) {
        let mut whole: serde_json::Map<String, Value> = others.into_iter().collect();
        whole.insert("mcpServers".to_owned(), Value::Object(servers.into_iter().collect()));
        let whole = Value::Object(whole);
        let text = if spread { format!("{whole:#}\n") } else { whole.to_string() };
        let text = if returns { text.replace('\n', "\r\n") } else { text };
        let wishes = [server(), hooks()];
        let with = put_in(&wishes, &text);
        let mut read: Value = serde_json::from_str(&with).map_err(|fault| TestCaseError::fail(format!("{fault}: {with}")))?;
        prop_assert!(read["mcpServers"].as_object_mut().is_some_and(|servers| servers.remove("relay").is_some()));
        prop_assert!(read.as_object_mut().is_some_and(|members| members.remove("hooks").is_some()));
        prop_assert_eq!(&read, &whole);
        let left = take(&wishes, &with).map_err(TestCaseError::fail)?;
        prop_assert_eq!(serde_json::from_str::<Value>(&left).ok(), Some(whole));
        if spread {
            prop_assert_eq!(left, text);
        }
    }
}

#[test]
fn where_the_store_was_gives_way_to_where_it_is() {
    let store = Wish::Word {
        under: Vec::new(),
        name: "roots",
        before: Vec::new(),
        word: "/state/relay/shop-1".to_owned(),
        folder: Some("/state/relay".into()),
    };
    let store = std::slice::from_ref(&store);
    let before = r#"{"roots": ["/a", "/state/relay", "/state/relay/old-2", "/state/relayed"]}"#;
    assert!(gaps(store, before).is_ok_and(|gaps| !gaps.is_empty()));
    let found: Value = serde_json::from_str(&put_in(store, before)).unwrap_or_default();
    assert_eq!(found["roots"], serde_json::json!(["/a", "/state/relayed", "/state/relay/shop-1"]));
    let left: Value = serde_json::from_str(&take(store, before).unwrap_or_default()).unwrap_or_default();
    assert_eq!(left["roots"], serde_json::json!(["/a", "/state/relayed"]));
    assert!(put_in(store, r#"{"roots": "/state/relay/old-2"}"#).contains(r#"["/state/relay/shop-1"]"#));
}

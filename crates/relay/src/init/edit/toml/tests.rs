use super::*;

fn settings() -> Vec<Setting> {
    vec![
        Setting::Table {
            under: "mcp_servers",
            name: "relay",
            entries: vec![("command", "relay".into()), ("args", Value::Array(["mcp"].into_iter().collect()))],
        },
        Setting::Word {
            under: "sandbox_workspace_write",
            name: "writable_roots",
            word: "/state/relay/shop-1".to_owned(),
            folder: "/state/relay".into(),
        },
    ]
}

const OURS: &str = "[mcp_servers.relay]\ncommand = \"relay\"\nargs = [\"mcp\"]\n";
const ROOTS: &str = "[sandbox_workspace_write]\nwritable_roots = [\"/state/relay/shop-1\"]\n";

/// What comes of putting them in; taking them out again gives the text as it was.
#[track_caller]
fn check(text: &str, expected: &str) {
    let put = put(&settings(), text).unwrap_or_else(|fault| panic!("{text:?} {fault}"));
    assert_eq!(put, expected, "{text:?}");
    assert_eq!(gaps(&settings(), &put), Ok(Vec::new()), "{put}");
    assert_eq!(super::put(&settings(), &put), Ok(put.clone()), "twice");
    assert_eq!(take(&settings(), &put).as_deref(), Ok(text), "back");
}

#[test]
fn settings_are_put_in_and_taken_out_again() {
    check("", &format!("{OURS}\n{ROOTS}"));
    for text in [
        "model = \"x\" # mine\n",
        "# only a comment\n",
        "# head\n[mcp_servers.other]\ncommand = 'o' # why\n\n[tui]\nx = 1\n# the end\n",
        "mcp_servers.other.command = 'o'\n\n\n",
        "[mcp_servers]\n",
    ] {
        check(text, &format!("{text}\n{OURS}\n{ROOTS}"));
    }
    assert!(put(&settings(), "x = 1").is_ok_and(|with| with == format!("x = 1\n\n{OURS}\n{ROOTS}")));
}

#[test]
fn what_was_written_around_it_since_stays() {
    let with = put(&settings(), "x = 1\n").unwrap_or_default();
    let more = "[mcp_servers.relay.tools.send]\napproval_mode = \"prompt\"\n\n# mine\n[tui]\ny = 1\n";
    let edited =
        with.replace("[sandbox", &format!("{more}\n# about roots\n[sandbox")).replace("shop-1\"]", "shop-1\", \"/b\"]");
    let left = take(&settings(), &edited).unwrap_or_default();
    assert_eq!(
        left,
        "x = 1\n\n# mine\n[tui]\ny = 1\n\n# about roots\n[sandbox_workspace_write]\nwritable_roots = [ \"/b\"]\n"
    );
}

#[test]
fn lists_and_inline_tables_stay_as_they_are_written() {
    for (roots, with_ours) in [
        ("[\n    \"/a\", # one\n    \"/b\",\n]", "[\n    \"/a\", # one\n    \"/b\",\n    \"/state/relay/shop-1\",\n]"),
        ("[\n  \"/a\", # one\n  # more\n]", "[\n  \"/a\", # one\n  # more\n  \"/state/relay/shop-1\",\n]"),
        ("[\n  \"/a\" # one\n  ]", "[\n  \"/a\", # one\n  \"/state/relay/shop-1\"\n  ]"),
        ("[\"/a\"]", "[\"/a\", \"/state/relay/shop-1\"]"),
    ] {
        let text =
            |roots: &str| format!("[sandbox_workspace_write]\nwritable_roots = {roots}\nnetwork_access = true\n");
        let with = put(&settings(), &text(roots)).unwrap_or_default();
        assert!(with.starts_with(&text(with_ours)), "{with}");
        assert_eq!(
            take(&settings(), &with).map(|left| left.replace("\"/a\" #", "\"/a\", #")),
            Ok(text(roots).replace("\"/a\" #", "\"/a\", #"))
        );
    }
    let inline = "mcp_servers = { other = { command = \"o\" } }\n";
    let with = put(&settings(), inline).unwrap_or_default();
    assert!(with.contains("other = { command = \"o\" }") && gaps(&settings(), &with) == Ok(Vec::new()), "{with}");
}

#[test]
fn the_ends_of_lines_stay() {
    let text = "model = \"x\"\r\n[tui]\r\ny = 1\r\n";
    let with = put(&settings(), text).unwrap_or_default();
    assert!(with.starts_with(text) && with.matches('\n').count() == with.matches("\r\n").count(), "{with:?}");
    assert_eq!(take(&settings(), &with).as_deref(), Ok(text));
    let mixed = "[sandbox_workspace_write]\r\nb = 2\n";
    assert!(put(&settings(), mixed).is_err(), "it would be reformatted");
}

#[test]
fn an_older_table_is_updated_and_keeps_what_was_added() {
    let old =
        "[mcp_servers.relay]\ncommand = \"/old/relay\"\nargs = [ \"mcp\" ]\nstartup_timeout_sec = 20 # slow disk\n";
    let with = put(&settings(), old).unwrap_or_default();
    assert!(with.contains("command = \"relay\"\nargs = [ \"mcp\" ]\nstartup_timeout_sec = 20 # slow disk\n"), "{with}");
    assert_eq!(with.matches("[mcp_servers.relay]").count(), 1);
    let mut wanted = settings();
    let home = Value::InlineTable(toml_edit::InlineTable::from_iter([("RELAY_HOME", "/state")]));
    if let Setting::Table { entries, .. } = &mut wanted[0] {
        entries.push(("env", home));
    }
    let old =
        "[mcp_servers.relay]\ncommand = \"relay\"\nargs = [\"mcp\"]\n\n[mcp_servers.relay.env]\nA = \"b\" # mine\n";
    let with = put(&wanted, old).unwrap_or_default();
    assert!(
        with.contains("A = \"b\" # mine\nRELAY_HOME = \"/state\"\n") && gaps(&wanted, &with) == Ok(Vec::new()),
        "{with}"
    );
    let served = "[mcp_servers.relay]\nurl = \"http://127.0.0.1:7717/mcp\"\n";
    let with = put(&settings(), served).unwrap_or_default();
    assert!(with.starts_with(served) && !with.contains("command"), "{with}");
    assert!(take(&settings(), &with).is_ok_and(|left| left == served));
}

#[test]
fn what_is_no_toml_is_left_alone() {
    let fault = put(&settings(), "a = 1\nb = = 2\n").err().unwrap_or_default();
    assert!(fault.starts_with("is no TOML: line 2: "), "{fault}");
    assert!(put(&settings(), "mcp_servers = 3\n").is_err());
    assert!(put(&settings(), "[sandbox_workspace_write]\nwritable_roots = \"/a\"\n").is_err());
}

#[test]
fn where_the_store_was_gives_way_to_where_it_is() {
    let before = "[sandbox_workspace_write]\nwritable_roots = [\"/a\", \"/state/relay\", \"/state/relay/old-2\", \"/state/relayed\"]\n";
    let after = put(&settings()[1..], before).unwrap_or_default();
    let roots = "writable_roots = [\"/a\", \"/state/relayed\", \"/state/relay/shop-1\"]\n";
    assert!(after.contains(roots) && holds(&settings()[1], &after), "{after}");
    assert!(!holds(&settings()[1], before));
    let left = take(&settings()[1..], before).unwrap_or_default();
    assert!(left.contains("writable_roots = [\"/a\", \"/state/relayed\"]\n"), "{left}");
}

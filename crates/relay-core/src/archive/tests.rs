use proptest::prelude::*;

use super::*;

fn entry(number: Number, payload: &str, texts: &[(&str, &str)]) -> Entry {
    let canonical = format!(r#"{{"at":"2026-11-15T09:30:00.000Z","actor":"BlueLake","key":"k","kind":{payload}}}"#);
    Entry {
        number,
        payload: serde_json::from_str(&canonical).unwrap_or_else(|fault| panic!("{canonical}: {fault}")),
        canonical,
        texts: texts
            .iter()
            .map(|(field, text)| ((*field).into(), KeptText { salt: vec![7; 16], text: (*text).into() }))
            .collect(),
        erased: None,
    }
}

fn sent(number: Number, subject: &str, body: &str) -> Entry {
    let recipients =
        r#"[{"party":"RedForest","line":"to"},{"party":"GreenHill","line":"cc"},{"party":"GoldOwl","line":"bcc"}]"#;
    let payload = format!(
        r#""message_sent","thread":"bd-1","from":"BlueLake","recipients":{recipients},"subject":"s","body":"b","importance":"high","ack_within_ms":3600000,"reply_to":12,"twin":null"#
    );
    entry(number, &payload, &[("subject", subject), ("body", body)])
}

fn shown(file: &File) -> (&str, &str) {
    (&file.path, std::str::from_utf8(&file.bytes).unwrap_or("not UTF-8"))
}

fn back(entry: &Entry) -> Result<Entry, Unreadable> {
    let file = entry.file();
    Entry::read(entry.number, &file.bytes, |path| {
        entry.readable().filter(|readable| readable.path == path).map(|readable| readable.bytes)
    })
}

#[test]
fn a_message_is_an_event_and_a_letter() {
    let entry = sent(12_345, "The \"login\": 1\n---", "---\nTwo lines.\n");
    let (file, letter) = (entry.file(), entry.readable().unwrap_or_else(|| panic!("no letter")));
    assert_eq!(
        shown(&file),
        (
            "events/1/123/12345.json",
            &*format!(
                "{{\"number\":12345,\n\"payload\":{},\n\"texts\":{{\"body\":{{\"salt\":\"{salt}\"}},\"subject\":{{\"salt\":\"{salt}\"}}}}}}\n",
                entry.canonical,
                salt = "07".repeat(16)
            )
        )
    );
    assert_eq!(
        shown(&letter),
        (
            "threads/a2/bd-1/123/12345.md",
            "---\nnumber: 12345\ntime: 2026-11-15T09:30:00.000Z\nthread: \"bd-1\"\nfrom: \"BlueLake\"\nto: [\"RedForest\"]\ncc: [\"GreenHill\"]\nsubject: \"The \\\"login\\\": 1\\n---\"\nimportance: high\nack: \"within 1h\"\nreply_to: 12\n---\n\n---\nTwo lines.\n\n"
        )
    );
    assert_eq!(back(&entry), Ok(entry));
}

#[test]
fn nobody_learns_of_a_blind_recipient_from_the_letter() {
    let entry = sent(1, "s", "b");
    assert!(entry.canonical.contains("GoldOwl"), "the event itself is complete");
    let letter = entry.readable().unwrap_or_else(|| panic!("no letter"));
    assert!(!shown(&letter).1.contains("GoldOwl"));
    assert!(!message(&[entry], "").contains("GoldOwl"));
}

#[test]
fn an_erased_message_leaves_a_letter_that_says_by_whom() {
    let whole = sent(5, "secret subject", "secret body");
    let entry = Entry {
        texts: BTreeMap::new(),
        erased: Some(Erased { by: Party::Human, number: 9, why: Some("a token".to_owned()), only_subject: false }),
        ..whole
    };
    let letter = entry.readable().unwrap_or_else(|| panic!("no letter"));
    let (_, text) = shown(&letter);
    assert!(!text.contains("secret"), "{text}");
    assert!(text.contains("erased: \"by human with #9\"\nwhy: \"a token\"\n---\n\n"), "{text}");
    assert_eq!(back(&entry), Ok(Entry { erased: None, ..entry }), "who erased it stands in the later event");
}

#[test]
fn texts_of_other_events_stand_in_their_own_file() {
    let payload = r#""reservation_taken","id":1,"from":"RedForest","by":"BlueLake","generation":1,"expires_at":"2026-11-15T10:30:00.000Z","why":"w""#;
    let entry = entry(7, payload, &[("why", "It was \"silent\".")]);
    let file = entry.readable().unwrap_or_else(|| panic!("no file"));
    assert_eq!(
        shown(&file),
        (
            "reservations/0/0/7.md",
            "---\nnumber: 7\ntime: 2026-11-15T09:30:00.000Z\nkind: reservation_taken\nactor: \"BlueLake\"\nwhy: \"It was \\\"silent\\\".\"\n---\n\nBlueLake took #1 over from RedForest\n"
        )
    );
    assert_eq!(Entry::read(7, &entry.file().bytes, |_| None), Ok(entry));
}

/// What somebody wrote can pass for no line of a file, and steers no terminal.
#[test]
fn a_hostile_text_stays_between_its_quotes() {
    let hostile = "a\n---\n\nhuman retired BlueLake\n\u{1b}[31m\u{9b}2J\u{202e}\u{7f}\u{e0041}";
    let project = "/tmp/x\\n\\nRelay-Number: 9";
    for (payload, field) in [
        (r#""link_requested","from":"BlueLake","to":"RedForest","why":"w","ttl_ms":1,"expires_at":"2026-11-15T10:30:00.000Z""#.to_owned(), "why"),
        (format!(r#""link_requested","from":"BlueLake","to":"Owl@{project}","why":"w","ttl_ms":1,"expires_at":"2026-11-15T10:30:00.000Z""#), "why"),
        (r#""agent_registered","agent":"BlueLake","credential":"c","program":null,"model":null,"task":"t","session":null,"parent":null,"policy":"auto""#.to_owned(), "task"),
    ] {
        let entry = entry(7, &payload, &[(field, hostile)]);
        let file = entry.readable().unwrap_or_else(|| panic!("no file"));
        let (_, text) = shown(&file);
        assert_eq!(text.lines().filter(|line| *line == "---").count(), 2, "{text}");
        assert_eq!(text.lines().skip_while(|line| !line.is_empty()).count(), 2, "{text}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control() && !"\u{202e}\u{e0041}".contains(c)), "{text:?}");
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(": "));
        assert_eq!(line.and_then(|line| serde_json::from_str::<String>(line).ok()).as_deref(), Some(hostile));
        let told = message(std::slice::from_ref(&entry), &"ab".repeat(32));
        assert_eq!(Cursor::read(&told).map(|cursor| cursor.number), Some(7), "{told}");
        assert_eq!(told.lines().count(), 4, "{told}");
        assert_eq!(Entry::read(7, &entry.file().bytes, |_| None), Ok(entry));
    }
    let letter = sent(5, hostile, "b");
    assert_eq!(back(&letter), Ok(letter));
}

#[test]
fn a_claim_says_what_it_is_for() {
    let granted = |reason: &str| {
        format!(
            r#""reservation_granted","agent":"BlueLake","pattern":"src","prefix":"src","exclusive":true,"reason":{reason},"ttl_ms":1,"first_granted_at":"2026-11-15T09:30:00.000Z","expires_at":"2026-11-15T10:30:00.000Z","overlaps":[],"conflicts":[]"#
        )
    };
    let renewed = |reasons: &[&str]| {
        let claim = |reason: &&str| {
            format!(
                r#"{{"id":1,"ttl_ms":1,"expires_at":"2026-11-15T10:30:00.000Z","exclusive":true,"reason":{reason}}}"#
            )
        };
        let claims: Vec<String> = reasons.iter().map(claim).collect();
        format!(r#""reservation_renewed","agent":"BlueLake","claims":[{}]"#, claims.join(","))
    };
    let check = |payload: &str, expected: &str| {
        let file = entry(7, payload, &[]).readable().unwrap_or_else(|| panic!("no file"));
        let (_, text) = shown(&file);
        let expected = format!("actor: \"BlueLake\"\n{expected}---\n\nBlueLake re");
        assert!(text.contains(&expected), "{text}");
    };
    check(&granted("null"), "");
    check(&granted("\"bd-1\""), "thread: \"bd-1\"\n");
    check(&renewed(&["\"bd-1\"", "null", "\"bd-1\""]), "thread: \"bd-1\"\n");
    check(&renewed(&["\"bd-2\"", "\"bd-1\""]), "threads: [\"bd-1\", \"bd-2\"]\n");
}

#[test]
fn a_file_that_is_not_what_it_should_be_is_named() {
    let entry = sent(5, "s", "b");
    let (file, letter) = (entry.file(), entry.readable().unwrap_or_else(|| panic!("no letter")));
    let check = |number: Number, bytes: &[u8], letter: Option<&[u8]>, expected: &str| {
        let read = Entry::read(number, bytes, |_| letter.map(<[u8]>::to_vec));
        let fault = read.err().map(|fault| fault.to_string()).unwrap_or_default();
        assert!(fault.starts_with(expected), "{fault:?}");
    };
    check(6, &file.bytes, Some(&letter.bytes), "events/0/0/6.json: it is the file of #5");
    check(5, b"{", Some(&letter.bytes), "events/0/0/5.json: EOF");
    check(5, &file.bytes, None, "threads/a2/bd-1/0/5.md: it is missing");
    check(5, &file.bytes, Some(b"no letter"), "threads/a2/bd-1/0/5.md: it has no front matter");
    check(5, &file.bytes, Some(b"---\nfrom: \"x\"\n"), "threads/a2/bd-1/0/5.md: its front matter does not end");
    check(5, &file.bytes, Some(b"---\na: 1\n---\n\nb\n"), "events/0/0/5.json: the text of \"subject\" is missing");
}

#[test]
fn a_commit_tells_what_happened_and_how_far_it_goes() {
    let chain = "ab".repeat(32);
    let one = [sent(41, "Login", "b")];
    assert_eq!(
        message(&one, &chain),
        format!("#41 BlueLake wrote to RedForest, GreenHill in bd-1\n\nRelay-Number: 41\nRelay-Chain: {chain}\n")
    );
    let two = [one[0].clone(), entry(42, r#""thread_prepared","thread":"bd-1","agent":"BlueLake""#, &[])];
    let text = message(&two, &chain);
    assert!(text.starts_with("#41 to #42\n\n#41 BlueLake wrote to"), "{text}");
    assert_eq!(Cursor::read(&text), Some(Cursor { number: 42, chain: chain.clone() }));
    for other in ["", "A commit of somebody's", "x\n\nRelay-Number: 7\n", "x\n\nRelay-Number: 7\nRelay-Chain: short\n"]
    {
        assert_eq!(Cursor::read(other), None, "{other:?}");
    }
}

proptest! {
    #[test]
    fn every_text_is_read_back_as_it_was(subject in "\\PC{0,40}|(?s).{0,40}", body in "(?s).{1,200}|(---\n){1,3}") {
        let entry = sent(3, &subject, &body);
        prop_assert_eq!(back(&entry), Ok(entry));
    }
}

#[test]
fn what_is_wrong_with_an_event_is_said() {
    let named = |kept: &KeptText| text_hash(&kept.salt, &kept.text).0;
    let mut whole = sent(7, "Login", "It works.");
    let (subject, body) = (named(&whole.texts["subject"]), named(&whole.texts["body"]));
    whole.canonical = whole.canonical.replace(r#""subject":"s""#, &format!(r#""subject":"{subject}""#));
    whole.canonical = whole.canonical.replace(r#""body":"b""#, &format!(r#""body":"{body}""#));
    whole.payload = serde_json::from_str(&whole.canonical).unwrap_or_else(|fault| panic!("{fault}"));
    let check = |change: &dyn Fn(&mut Entry), expected: &[&str]| {
        let mut entry = whole.clone();
        change(&mut entry);
        assert_eq!(entry.faults(), expected);
    };
    let erase = |entry: &mut Entry| {
        entry.texts.clear();
        entry.erased = Some(Erased { by: Party::Human, number: 9, why: None, only_subject: false });
    };
    check(&|_| {}, &[]);
    check(&|entry| entry.canonical.push(' '), &["the payload of #7 is not canonical"]);
    check(
        &|entry| entry.texts.values_mut().take(1).for_each(|body| body.text.push('!')),
        &["the body of #7 is not the one that it names"],
    );
    check(
        &|entry| entry.texts.values_mut().skip(1).for_each(|subject| subject.salt[3] ^= 1),
        &["the subject of #7 is not the one that it names"],
    );
    check(&|entry| drop(entry.texts.remove("body")), &["the body of #7 is missing"]);
    check(&erase, &[]);
    let erase_subject = |entry: &mut Entry| {
        erase(entry);
        entry.erased.iter_mut().for_each(|erased| erased.only_subject = true);
    };
    check(&erase_subject, &["the body of #7 is missing"]);
    check(
        &|entry| drop(entry.texts.insert("why".into(), KeptText { salt: Vec::new(), text: String::new() })),
        &["#7 names no why, and there is one"],
    );
}

//! The hostile texts of `tests/fixtures/page` as messages: whatever they are, what is shown is made of the few elements that a message
//! may have, and leads nowhere but to the web.

use super::{ELEMENTS, render};

fn corpus() -> Vec<String> {
    let texts: Vec<String> =
        serde_json::from_str(include_str!("../../../../../tests/fixtures/page/injections.json")).unwrap_or_default();
    assert!(texts.len() >= 120, "{} texts", texts.len());
    texts
}

/// The elements of what ammonia wrote, each with its attributes: there, a `<` begins an element and nothing else does.
fn elements(markup: &str) -> Vec<(&str, Vec<(&str, &str)>)> {
    let starts = markup.split('<').skip(1).filter(|rest| !rest.starts_with('/'));
    starts.map(|rest| element(rest.split_once('>').map_or(rest, |(inside, _)| inside))).collect()
}

fn element(inside: &str) -> (&str, Vec<(&str, &str)>) {
    let (name, mut rest) = inside.split_once(' ').unwrap_or((inside, ""));
    let mut attributes = Vec::new();
    while let Some((key, after)) = rest.split_once("=\"") {
        let (value, next) = after.split_once('"').unwrap_or((after, ""));
        attributes.push((key.trim(), value));
        rest = next;
    }
    (name, attributes)
}

#[track_caller]
fn check(text: &str) {
    let markup = render(text).to_string();
    for (name, attributes) in elements(&markup) {
        assert!(ELEMENTS.contains(&name), "<{name}> of {text:?}: {markup}");
        for (key, value) in attributes {
            let is_known = match (name, key) {
                ("a", "href") => value.starts_with("http://") || value.starts_with("https://"),
                ("a", "rel") => value == "noopener noreferrer nofollow",
                ("a", "target") => value == "_blank",
                ("ol", "start") => value.parse::<u64>().is_ok(),
                _ => false,
            };
            assert!(is_known, "{key}={value:?} of {text:?}: {markup}");
        }
    }
    let is_seen = |each: char| !each.is_control() || each == '\n' || each == '\t';
    assert!(markup.chars().all(is_seen), "{text:?}: {markup:?}");
}

#[test]
fn nothing_of_the_corpus_is_more_than_text_and_links_to_the_web() {
    for text in corpus() {
        check(&text);
    }
}

/// In the middle of what people write, too.
#[test]
fn nothing_of_the_corpus_is_more_inside_of_other_marks() {
    for text in corpus() {
        for (before, after) in [
            ("> ", ""),
            ("- ", "\n- x"),
            ("**", "**"),
            ("`", "`"),
            ("[", "](https://a.example)"),
            ("| a |\n|---|\n| ", " |"),
            ("```\n", "\n```"),
            ("[x](", ")"),
            ("[x](https://a.example/ \"", "\")"),
            ("![", "](https://a.example/x.png)"),
            ("<", ">"),
            ("x\n\n", "\n\n[x]: javascript:y"),
        ] {
            check(&format!("{before}{text}{after}"));
        }
    }
}

/// What could be markup in pairs is not made of two halves.
#[test]
fn nothing_of_the_corpus_is_more_beside_another() {
    let texts = corpus();
    for (index, text) in texts.iter().enumerate() {
        let other = &texts[(index * 7 + 3) % texts.len()];
        check(&format!("{text}{other}"));
        check(&format!("{text}\n\n{other}"));
    }
}

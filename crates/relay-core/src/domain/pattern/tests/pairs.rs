//! Tests of the questions about two patterns: do they overlap, does one cover the other.

use super::*;

#[test]
fn two_patterns_overlap_exactly_when_there_is_a_path_for_both() {
    let rows = [
        (("src", "src/a.rs"), Some("src/a.rs")),
        (("src/a.rs", "src"), Some("src/a.rs")),
        (("src", "srcs"), None),
        (("src", "src"), Some("src")),
        (("src", "*.rs"), None),
        (("src", "**/*.rs"), Some("src/a.rs")),
        (("src/*.rs", "src/a*"), Some("src/a.rs")),
        (("src/*.rs", "src/*.toml"), None),
        (("src/**", "**/test"), Some("src/test")),
        (("src/**", "src"), Some("src/a")),
        (("a/*/c", "a/b/*"), Some("a/b/c")),
        (("*", "*/*"), None),
        (("?", "??"), None),
        (("?", "[.]x"), None),
        (("[a-m]", "[m-z]"), Some("m")),
        (("[a-l]", "[m-z]"), None),
        (("a*/", "*/b"), Some("a/b")),
        (("{a,b}/c", "{b,d}/?"), Some("b/c")),
        (("a/{**,b}/c", "a/c"), Some("a/c")),
        (("a/{,b}/c", "?/?"), Some("a/c")),
        (("?", "[.a]"), Some("a")),
        (("[.]?", "[.][.a]"), Some(".a")),
        (("[.]?", "?[.]"), None),
        (("[.]??", "[.][.]?"), Some("..a")),
        (("?", "é"), None),
        (("??", "é"), Some("é")),
        (("??", "[!!-~]?"), Some(" a")),
        (("[é]?", "??"), Some("À")),
        (("[é]?", "?[©-ÿ]"), Some("é")),
        (("[é]", "?*"), None),
        (("*é", "è*"), Some("èé")),
        (("{**é,,[ab]}b", "*"), Some("b")),
        (("res:a", "res:a"), Some("res:a")),
        (("res:a", "res:b"), None),
        (("res:a", "res:A"), None),
        (("res:a", "**"), None),
        (("res:a", r"\res:a"), None),
    ];
    let overlap = |(one, two): &(&str, &str)| {
        let compile = |text| Pattern::from_canonical(text).unwrap().compile(Sensitive);
        let witness = compile(one).overlap(&compile(two));
        assert_eq!(witness.is_some(), compile(two).overlap(&compile(one)).is_some());
        witness
    };
    check(&rows.map(|(pair, path)| (pair, path.map(str::to_owned))), overlap);
}

#[test]
fn overlap_folds_case_when_both_patterns_do() {
    let overlap =
        |(one, two): &(&str, &str)| pattern(one).compile(Insensitive).overlap(&pattern(two).compile(Insensitive));
    let rows = [
        (("SRC", "src/A"), Some("src/A")),
        (("SRC", "s*/A"), Some("SRC/a")),
        (("A?", "*B"), Some("ab")),
        (("res:a", "res:A"), None),
    ];
    check(&rows.map(|(pair, path)| (pair, path.map(str::to_owned))), overlap);
    let (exact, folding) = (compiled("Src"), pattern("src").compile(Insensitive));
    assert_eq!(exact.overlap(&folding).as_deref(), Some("Src"));
    assert!(folding.covers(&exact) && !exact.covers(&folding));
}

#[test]
fn covering_means_matching_every_path_of_the_other() {
    let rows = [
        (("src", "src/a"), true),
        (("src/a", "src"), false),
        (("src", "srcs"), false),
        (("src", "src/**"), true),
        (("src/**", "src"), false),
        (("src*/", "src"), true),
        (("**", "{a,b}*/"), true),
        (("**", "src"), true),
        (("**/*", "**"), true),
        (("*/**", "**"), false),
        (("*", "?*"), true),
        (("?*", "*"), true),
        (("??*", "*"), false),
        (("[!.]*", "*"), false),
        (("{[!.]*,.[!.]*,..?*}", "*"), true),
        (("{a,b}", "[ab]"), true),
        (("[ab]", "{a,b}"), true),
        (("[ab]", "{a,b,c}"), false),
        (("{a,b}/", "a"), true),
        (("a/{**,b}/c", "a/**/c"), true),
        (("[!a]*/", "é"), true),
        (("[!é]*/", "é"), false),
        (("[!é]*", "*"), false),
        (("{[[:graph:]]*,[! -~]*}", "[! ]*"), true),
        (("res:a", "res:a"), true),
        (("res:a", "res:b"), false),
        (("**", "res:a"), false),
    ];
    check(&rows, |(outer, inner)| compiled(outer).covers(&compiled(inner)));
}

#[test]
fn a_cover_that_is_too_complex_to_decide_is_denied() {
    let hard = format!("*a{}", "?".repeat(30));
    let twice = format!("*a*a{}", "?".repeat(30));
    assert!(!compiled(&hard).covers(&compiled(&twice)));
    let many = ["a", "b", "c", "d", "e"].map(|letter| format!("*{letter}{}", "?".repeat(30)));
    let many = format!("{{{}}}", many.join(","));
    assert!(!compiled(&many).covers(&compiled(&twice)));
    assert!(compiled("*a??").covers(&compiled("*a*a??")));
}

#[test]
fn hostile_pairs_are_decided_exactly() {
    let stars = |letter: &str| format!("*{letter}").repeat(255);
    let window = format!("*a{}", "?".repeat(100));
    let other = format!("*b{}", "?".repeat(100));
    assert_eq!(compiled(&window).overlap(&compiled(&other)), None);
    let longer = format!("*b?{}", "?".repeat(100));
    assert!(compiled(&window).overlap(&compiled(&longer)).is_some());
    assert!(compiled(&stars("a")).overlap(&compiled(&stars("b"))).is_none());
    assert!(compiled(&format!("{}*", stars("a"))).overlap(&compiled(&stars("b"))).is_some());
}

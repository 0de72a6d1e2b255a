#![allow(clippy::unwrap_used)]

mod pairs;

use super::Case::{Insensitive, Sensitive};
use super::*;

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text, &[]).unwrap_or_else(|fault| panic!("`{text}`: {fault}"))
}

fn compiled(text: &str) -> Compiled {
    pattern(text).compile(Sensitive)
}

/// Asks the same question of every row, and names each row whose answer is not the expected one.
fn check<Q: fmt::Debug, A: PartialEq + fmt::Debug>(rows: &[(Q, A)], answer: impl Fn(&Q) -> A) {
    let wrong: Vec<String> = rows
        .iter()
        .map(|(question, expected)| (question, expected, answer(question)))
        .filter(|(_, expected, actual)| *expected != actual)
        .map(|(question, expected, actual)| format!("{question:?}: {actual:?}, not {expected:?}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks which of the words in `yes` and `no` each pattern matches.
fn check_matches(case: Case, rows: &[(&str, &str, &str)]) {
    for (text, yes, no) in rows {
        let compiled = pattern(text).compile(case);
        let rows: Vec<(&str, bool)> = yes
            .split_whitespace()
            .map(|path| (path, true))
            .chain(no.split_whitespace().map(|path| (path, false)))
            .collect();
        assert!(!rows.is_empty());
        check(&rows, |path| compiled.matches(path));
    }
}

#[test]
fn a_pattern_without_wildcards_covers_the_path_and_everything_below() {
    check_matches(
        Sensitive,
        &[
            ("src", "src src/a src/a/b src/.x", "srcs sr Src a/src"),
            ("src/a.rs", "src/a.rs src/a.rs/x", "src src/a src/a.rst src/axrs"),
            (r"a\*b", "a*b a*b/c", "axb ab"),
            (r"\[x]", "[x] [x]/y", "x"),
            ("{id}.tsx", "{id}.tsx", "id.tsx"),
            ("{{x}}/{}", "{{x}}/{} {{x}}/{}/y", "x"),
            ("a}b,c", "a}b,c", "ab"),
        ],
    );
}

#[test]
fn wildcards_stay_in_their_segment_and_match_leading_dots() {
    check_matches(
        Sensitive,
        &[
            ("*", "a ab .a ...", "a/b"),
            ("src*", "src src.rs srcs", "src/a xsrc"),
            ("src/*.rs", "src/a.rs src/.rs", "src/a.rsx src/a/b.rs a.rs"),
            ("a?c", "abc a.c", "ac a/c abbc"),
            ("*/b", "a/b .a/b", "b a/c/b a/b/c"),
            ("é?", "éx", "é éxx"),
            ("a??b", "aéb axyb", "axb"),
            ("a**b", "ab axb", "a/b a/x/b"),
        ],
    );
}

#[test]
fn a_double_star_segment_is_any_number_of_segments() {
    check_matches(
        Sensitive,
        &[
            ("**", "a a/b a/b/c .x", ""),
            ("a/**", "a/b a/b/c", "a ab b/a"),
            ("**/b", "b a/b a/a/b", "ab b/a"),
            ("a/**/b", "a/b a/x/b a/x/y/b", "ab a/xb a b a/b/c"),
            ("a/**/**/b", "a/b a/x/b", "a"),
            ("**/**", "a a/b", ""),
            ("a/***/b", "a/b a/x/y/b", "ab"),
            ("**/*.rs", "a.rs x/a.rs x/y/.rs", "a.rs/x"),
        ],
    );
}

#[test]
fn a_slash_at_the_end_adds_everything_below() {
    check_matches(
        Sensitive,
        &[
            ("src*/", "src srcs src/a srcs/a/b", "a/src sr"),
            ("**/target/", "target a/target target/x a/target/x/y", "targets a/b"),
            ("{a,b}/", "a b a/x b/x/y", "c ab"),
            ("a*/.", "a ab ab/c", "b"),
        ],
    );
}

#[test]
fn brackets_match_one_byte_and_never_a_slash() {
    check_matches(
        Sensitive,
        &[
            ("[abc]", "a b c", "d ab A"),
            ("[!a]x", "bx .x", "ax /x a/x"),
            ("[^a]x", "bx", "ax"),
            ("[a-c]x", "ax bx cx", "dx -x"),
            ("[]a]", "] a", "b"),
            ("[!]a]x", "bx", "]x ax"),
            ("[a-]", "a -", "b"),
            (r"[\]-a]", "] ^ _ a", r"\ b"),
            ("[a-c-e]", "a b c - e", "d"),
            (r"[\\]x", r"\x", "ax"),
            ("[[:alpha:]_]", "a Z _", "1 : ["),
            ("[![:alnum:]]x", "-x .x", "ax 1x"),
            ("[a[:digit:]-z]", "a 1 - z", "b y"),
            ("[[.a]", "[ a", "b"),
            ("a[x/]b", "axb", "a/b"),
            ("a[!x]b", "ayb", "a/b axb"),
            ("[é]?", "é", "e éé"),
        ],
    );
}

#[test]
fn classes_hold_what_git_says_they_hold() {
    check_matches(
        Sensitive,
        &[
            ("[[:alnum:]]", "a Z 7", "- _"),
            ("[[:alpha:]]", "a Z", "7 -"),
            ("[[:digit:]]", "0 9", "a -"),
            ("[[:graph:]]", "a ! ~", "é"),
            ("[[:lower:]]", "a z", "A 1"),
            ("[[:print:]]", "a ! ~", "é"),
            ("[[:punct:]]", "! - ~", "a 1"),
            ("[[:upper:]]", "A Z", "a 1"),
            ("[[:xdigit:]]", "0 f F", "g -"),
        ],
    );
    // Bytes that no list of words can hold.
    for (text, yes, no) in [
        ("a[[:blank:]]b", ["a b", "a\tb"], ["a\nb", "axb"]),
        ("a[[:space:]]b", ["a b", "a\rb"], ["a\u{b}b", "axb"]),
        ("a[[:cntrl:]]b", ["a\u{1}b", "a\u{7f}b"], ["a b", "axb"]),
        ("a[[:print:]]b", ["a b", "axb"], ["a\tb", "a\u{7f}b"]),
    ] {
        for path in yes.into_iter().chain(no) {
            assert_eq!(compiled(text).matches(path), yes.contains(&path), "{text} {path:?}");
        }
    }
}

#[test]
fn what_covers_depends_on_the_case_of_both() {
    let both = |outer: &str, one: Case, inner: &str, two: Case| {
        pattern(outer).compile(one).covers(&pattern(inner).compile(two))
    };
    for (outer, inner) in [("src", "src"), ("src", "src/a"), ("src/*.rs", "src/*.rs")] {
        assert!(both(outer, Sensitive, inner, Sensitive));
        assert!(both(outer, Insensitive, inner, Insensitive));
        assert!(both(outer, Insensitive, inner, Sensitive), "{outer} {inner}");
        assert!(!both(outer, Sensitive, inner, Insensitive), "`{inner}` without regard to case has more paths");
    }
    assert!(both("SRC", Insensitive, "src/a", Insensitive));
    assert!(!both("SRC", Sensitive, "src/a", Sensitive));
}

#[test]
fn an_example_is_friendly_only_where_both_match_it() {
    let example = |one: &str, two: &str| compiled(one).overlap(&compiled(two));
    assert_eq!(example("*.rs", "*.rs").as_deref(), Some("a.rs"));
    assert_eq!(example("*.rs", ".*").as_deref(), Some(".rs"));
    assert_eq!(example("src/*.rs", "src/.r*").as_deref(), Some("src/.rs"));
}

#[test]
fn a_pattern_is_shown_as_it_is_kept() {
    for text in ["src/**", "res:port", r"a\*b"] {
        assert_eq!(pattern(text).to_string(), pattern(text).as_str());
    }
}

#[test]
fn braces_choose_between_alternatives() {
    check_matches(
        Sensitive,
        &[
            ("{a,b}", "a b", "c a/x {a,b}"),
            ("x{,y}", "x xy", "xx"),
            ("{a,b/c}/d", "a/d b/c/d", "b/d a/c/d"),
            ("a{b{c,d},e}f", "abcf abdf aef", "abf af abcdf"),
            ("*.{rs,toml}", "a.rs .toml", "a.md a.{rs,toml}"),
            (r"{a\,b,c}x", "a,bx cx", "ax bx"),
            ("{[,],a}x", ",x ax", "[x"),
            ("{{a,b}}x", "{a}x {b}x", "ax a}x"),
            ("a/{,b}/c", "a/c a/b/c", "a/x/c"),
            ("a{/b,}/c", "a/c a/b/c", "ac"),
            ("a/{/b,c}", "a/b a/c", "a"),
        ],
    );
}

#[test]
fn a_double_star_in_braces_looks_outward_for_its_slashes() {
    check_matches(
        Sensitive,
        &[
            ("a/{**,b}/c", "a/c a/b/c a/x/y/c", "ac a/c/d"),
            ("{**,b}", "a a/b", ""),
            ("a/{**,b}", "a/b a/x/y", "a"),
            ("{**/,}b", "b a/b a/x/b", "ab"),
            ("x{**/,}b", "xb x/b xy/b", "x/y/b"),
            ("a{/**,}/b", "a/b a/x/y/b", "ab"),
            ("a/{{**,x},y}/b", "a/b a/p/q/b", "ab"),
            ("a/{**,b}c", "a/c a/xc a/bc", "a/x/c"),
            ("{a/,b/}**", "a/x b/x", "a/x/y"),
            ("a/{b/**/c,d}", "a/b/c a/b/x/c a/d", "a/c"),
        ],
    );
}

#[test]
fn folding_case_is_for_ascii_letters_only() {
    check_matches(
        Insensitive,
        &[
            ("Src", "src SRC/a sRc", "srcs"),
            ("*.RS", "a.rs A.Rs", "a.r"),
            ("[a-c]x", "Ax bX", "dx"),
            ("[!a]x", "bx Bx", "ax Ax"),
            ("[[:upper:]]", "a A", "1"),
            ("É*", "É", "é"),
            ("[Z-_]", "z Z ^ _", "a y"),
        ],
    );
}

#[test]
fn nothing_matches_a_text_that_is_not_a_clean_path() {
    let bad = ["", "/", "/a", "a/", "a//b", ".", "..", "./a", "a/../b", "a/.", "a\0b"];
    for text in ["**", "*", "**/*", "?", "a", "a/**", "?*/", "a*"] {
        let compiled = compiled(text);
        check(&bad.map(|path| (path, false)), |path| compiled.matches(path));
    }
}

#[test]
fn a_resource_matches_no_path() {
    let resource = pattern("res:port:8080");
    assert!(resource.is_resource() && !resource.is_literal());
    assert!(!resource.compile(Sensitive).matches("res:port:8080"));
    let file = pattern("./res:port:8080");
    assert!(file.is_literal() && !file.is_resource());
    assert!(file.compile(Sensitive).matches("res:port:8080"));
}

#[test]
fn one_canonical_text_stands_for_trivially_different_spellings() {
    let rows = [
        ("src/a", "src/a"),
        ("./src//a", "src/a"),
        ("src/", "src"),
        ("src/.", "src"),
        ("a/../b", "b"),
        ("a/b/../../c", "c"),
        ("src*/", "src*/"),
        ("src*//", "src*/"),
        ("src*/./", "src*/"),
        ("a/**/", "a/**"),
        ("**/**/x", "**/**/x"),
        ("a**b/***/c", "a*b/**/c"),
        ("[^a]b", "[!a]b"),
        (r"\a\b", "ab"),
        (r"a\*b", r"a\*b"),
        (r"a\]b\}c\,", "a]b}c,"),
        (r"a\[b", r"a\[b"),
        ("{a}", r"\{a}"),
        ("{x{a},b}", r"{x\{a\},b}"),
        (r"{a\,b,c\}d}", r"{a\,b,c\}d}"),
        ("{a,**}/b", "{a,**}/b"),
        ("x{a,**}/b", "x{a,*}/b"),
        ("./res:a", r"\res:a"),
        ("./res:*", r"\res:*"),
        ("res:a", "res:a"),
        (" a ", " a "),
        ("a/ /b", "a/ /b"),
        ("[a/../b]x/./y", "[a/../b]x/y"),
        ("{a/b}/../c", r"\{a/c"),
    ];
    check(&rows, |text| Pattern::parse(text, &[]).unwrap().text.leak() as &str);
    check(&rows.map(|(_, text)| (text, text)), |text| Pattern::parse(text, &[]).unwrap().text.leak() as &str);
}

#[test]
fn an_absolute_path_is_made_relative_to_the_longest_root_around_it() {
    let roots = ["/home/me/app", "/home/me/app/.wt/one", "/wt/[two]*", "/wt/[two]*/[x]"];
    let relative = |input: &&str| match Pattern::parse(input, &roots) {
        Ok(pattern) => pattern.as_str().to_owned(),
        Err(PatternFault::Outside { path }) => format!("outside {path}"),
        Err(PatternFault::Invalid { why }) => why,
    };
    let rows = [
        ("/home/me/app/src", "src"),
        ("/home//me/./app/x/../src", "src"),
        ("/home/me/app/src/*.rs", "src/*.rs"),
        ("/home/me/app/.wt/one/src", "src"),
        ("/home/me/app/.wt/two", ".wt/two"),
        ("/home/me/app/.wt/one/../two/x", ".wt/two/x"),
        ("/wt/[two]*/a*", "a*"),
        ("/wt/[two]*/[x]/y", "y"),
        (r"/wt/\[two]\*/a", "a"),
        ("/home/me/apps/src", "outside /home/me/apps/src"),
        ("/home/me/app/../x", "outside /home/me/app/../x"),
        ("/home/*/app/src", "outside /home/*/app/src"),
        ("/home", "outside /home"),
        ("/home/me/app", "it is the project root, which is written `**`"),
        ("/home/me/app/", "it is the project root, which is written `**`"),
        ("/", "it leaves no path; the whole project is written `**`"),
        ("../x", "outside ../x"),
        ("a/../../app/x", "outside a/../../app/x"),
    ];
    check(&rows.map(|(input, text)| (input, text.to_owned())), relative);
    let anywhere = Pattern::parse("/a/b", &["/"]).unwrap();
    assert_eq!(anywhere.as_str(), "a/b");
}

#[test]
fn an_invalid_pattern_is_refused_with_what_is_wrong_about_it() {
    let why = |text: &&str| match Pattern::parse(text, &[]) {
        Err(PatternFault::Invalid { why }) => why,
        other => format!("{other:?}"),
    };
    let empty = "it leaves no path; the whole project is written `**`";
    let nothing = "it can match no path (`?` and `[…]` match single bytes)";
    let dots = "an alternative makes a `.` or `..` segment";
    let ends = "an alternative makes it end in `/`; put the `/` after the closing brace";
    let starts = "an alternative makes it start with `/`; put the `/` inside, after the text";
    let climbs = "`..` after a wildcard cannot be resolved, write the path without it";
    let resource = "the name of a resource has 1 to 128 characters";
    let long_name = format!("res:{}", "n".repeat(129));
    let deep = format!("{}a{}", "{b,".repeat(17), "}".repeat(17));
    let (long, grown) = ("a".repeat(2049), "{}".repeat(1024));
    let rows = [
        ("", "it is empty; the whole project is written `**`"),
        (".", empty),
        ("./", empty),
        ("a/..", empty),
        ("src/[ab", "`[` at byte 4 is never closed"),
        ("[", "`[` at byte 0 is never closed"),
        ("[]", "`[` at byte 0 is never closed"),
        ("[!]", "`[` at byte 0 is never closed"),
        (r"[a\", "`[` at byte 0 is never closed"),
        ("[a-", "`[` at byte 0 is never closed"),
        ("[[:alpha:]", "`[` at byte 0 is never closed"),
        ("[[:alpha", "`[` at byte 0 is never closed"),
        ("[z-a]", "the range around the `-` at byte 2 runs backwards"),
        ("[[:foo:]]", "`[:foo:]` at byte 1 is not a known character class"),
        ("[[:]x]", "`[:` at byte 1 has no `:]`; escape the `[` if it is meant"),
        ("[[:a]x]", "`[:` at byte 1 has no `:]`; escape the `[` if it is meant"),
        ("a{b,{c}", "`{` at byte 1 is never closed"),
        ("é{a,b", "`{` at byte 2 is never closed"),
        (&deep, "`{` at byte 48 nests braces more than 16 deep"),
        (r"a\", r"`\` at byte 1 has nothing after it to escape"),
        (r"a\/b", r"`\` at byte 1 escapes a `/`, write it plain"),
        ("a\nb", "there is a control character at byte 1"),
        ("a\0", "there is a control character at byte 1"),
        ("a\u{85}", "there is a control character at byte 1"),
        ("[/]", nothing),
        ("a/[.]", nothing),
        ("[.][.]/a", nothing),
        ("[é]", nothing),
        ("*/../x", climbs),
        ("src/*/a/../x", climbs),
        ("{a,b}/..", climbs),
        ("{a/../b,c}", dots),
        ("a/{.,b}", dots),
        (".{.,a}/b", dots),
        ("a/{,b}", ends),
        ("{a/,b}", ends),
        ("{a/,b}/", ends),
        ("{,a}", "with an empty alternative nothing is left of it"),
        ("{/a,b}", starts),
        ("{a,}/b", starts),
        ("res:", resource),
        (&long_name, resource),
        (&long, "it is 2049 bytes long, the limit is 2048"),
        (&grown, "it is 3072 bytes in its canonical form, the limit is 2048"),
    ];
    check(&rows.map(|(text, expected)| (text, expected.to_owned())), why);
    assert!(why(&"res:a/b").starts_with("`/` at byte 5 is not allowed"));
    assert!(why(&"res:é").starts_with("`é` at byte 4 is not allowed"));
}

#[test]
fn letters_beyond_ascii_are_not_forgotten() {
    let example = |one: &str, two: &str| compiled(one).overlap(&compiled(two));
    assert_eq!(example("é*", "*é").as_deref(), Some("é"));
    assert_eq!(example("ä*/x", "*ö/x").as_deref(), Some("äö/x"));
    assert_eq!(example("ä*", "ö*"), None);
    // Only two bytes beyond ASCII tell these apart.
    assert!(!compiled("[!é][!é]x").covers(&compiled("??x")));
    assert!(compiled("??x").covers(&compiled("[!é][!é]x")));
}

#[test]
fn a_name_may_have_dots_anywhere() {
    for text in ["a./*", "a../*", ".../*", "{a,b}./c", "{a,b}../c", "..{a,b}/c", "*./c", "a/{b,c}.../d"] {
        assert_eq!(Pattern::parse(text, &[]).map(|pattern| pattern.to_string()).as_deref(), Ok(text));
    }
}

#[test]
fn the_limits_themselves_are_allowed() {
    let deep = format!("{}a{}", "{b,".repeat(16), "}".repeat(16));
    let name = format!("res:{}", "n".repeat(128));
    for text in [deep, name, "a".repeat(2048), "*a".repeat(1024), "a/*b?[c]/".repeat(227)] {
        assert_eq!(Pattern::parse(&text, &[]).unwrap().as_str(), text);
    }
}

#[test]
fn the_prefix_is_what_stands_before_the_first_wildcard_segment() {
    let rows = [
        ("Src/a.rs", "Src/a.rs"),
        ("Src/a/*.rs", "Src/a"),
        ("Src/a*/b", "Src"),
        ("src*", ""),
        ("**/x", ""),
        (r"a\*b/c/?", "a*b/c"),
        (r"a\*b", "a*b"),
        ("a/{b/c,d}/e", "a"),
        ("a/x{b}/*", "a/x{b}"),
        ("a/b*/", "a"),
        ("res:A", "res:A"),
    ];
    let owned = rows.map(|(text, prefix)| (text, prefix.to_owned()));
    check(&owned, |text| pattern(text).prefix(Sensitive));
    let folded = rows.map(|(text, prefix)| (text, prefix.to_lowercase()));
    check(&folded, |text| pattern(text).prefix(Insensitive));
}

#[test]
fn matching_stays_right_when_the_tables_overflow() {
    let text = format!("*a{}", "?".repeat(200));
    let compiled = compiled(&text);
    // Every path leads through states of its own, far more than the tables hold.
    for seed in 1..200_u32 {
        let letter = |at: u32| {
            if (seed * (at * at + 7)) % 11 < 5 { 'a' } else { 'b' }
        };
        let path: String = (0..300).map(letter).collect();
        let expected = path.as_bytes()[300 - 201] == b'a';
        assert_eq!(compiled.matches(&path), expected, "{path}");
    }
}

#[test]
fn the_characters_of_a_path_mean_themselves() {
    let rows = [
        ("src/a.rs", "src/a.rs"),
        ("app/[id]/page.tsx", "app/\\[id]/page.tsx"),
        ("a*b?c{d,e}\\f", "a\\*b\\?c\\{d,e}\\\\f"),
        ("res:x", "\\res:x"),
        ("./a/../b//c", "b/c"),
        ("/abs/tree/src/[id].ts", "src/\\[id].ts"),
    ];
    let of_path = |path: &&str| Pattern::of_path(path, &["/abs/tree"]).unwrap().text.leak() as &str;
    check(&rows, of_path);
    for (path, text) in rows {
        assert!(pattern(text).is_literal(), "{path}");
    }
    let odd = Pattern::of_path("src/a\nb.rs", &[]).unwrap().compile(Case::Sensitive);
    assert!(pattern("src").compile(Case::Sensitive).overlap(&odd).is_some());
    assert!(pattern("src/*.rs").compile(Case::Sensitive).overlap(&odd).is_some());
    assert!(pattern("src/a").compile(Case::Sensitive).overlap(&odd).is_none());
    assert!(Pattern::to_claim("src/a\nb.rs", &[]).is_none());
    assert_eq!(Pattern::to_claim("src/[a].rs", &[]), Some(pattern("src/\\[a].rs")));
    assert!(Pattern::of_path("/elsewhere/a.rs", &["/abs/tree"]).is_err());
    assert!(Pattern::of_path("", &["/abs/tree"]).is_err());
}

//! Does a message still speak about the subject of its thread? (Signal TOPIC_DRIFT.)
//!
//! The rule is deliberately coarse: it only asks whether two subjects have a single telling word
//! in common. A hint that is rarely wrong is worth more than one that catches everything.

/// Words that name no topic, sorted, in lower case. Besides grammar there are the pieces that an
/// apostrophe leaves behind ("don't", "I'm") and the filler with which people open a mail.
/// Words such as "status", "build" or "test" are absent: they may well be the topic.
#[rustfmt::skip] // One word to a line would bury the rule under its list.
const STOP_WORDS: &[&str] = &[
    "a", "about", "ack", "after", "again", "all", "also", "am", "an", "and", "another", "any",
    "are", "aren", "as", "at", "be", "because", "been", "before", "being", "between", "both", "but",
    "by", "can", "could", "couldn", "d", "did", "didn", "do", "does", "doesn", "doing", "don",
    "done", "each", "few", "for", "from", "fyi", "had", "has", "hasn", "have", "haven", "having",
    "he", "hello", "her", "here", "hey", "hi", "him", "his", "how", "i", "if", "in", "into", "is",
    "isn", "it", "its", "just", "ll", "m", "may", "me", "might", "more", "most", "must", "my", "no",
    "nor", "not", "now", "of", "off", "ok", "okay", "on", "once", "only", "or", "other", "our",
    "out", "over", "please", "question", "questions", "re", "s", "shall", "she", "should",
    "shouldn", "so", "some", "such", "t", "than", "thank", "thanks", "that", "the", "their", "them",
    "then", "there", "these", "they", "this", "those", "through", "to", "too", "under", "until",
    "up", "update", "updates", "us", "ve", "very", "via", "was", "wasn", "we", "were", "weren",
    "what", "when", "where", "which", "while", "who", "whom", "whose", "why", "will", "with",
    "without", "won", "would", "wouldn", "yes", "yet", "you", "your",
];

/// What mail programs put before the subject of a reply or of a forwarded message.
const PREFIXES: &[&str] = &["re", "fwd", "fw", "aw"];

/// A shorter word ("ui", "v2") is too common to prove that two subjects belong together.
const TELLING_LETTERS: usize = 3;

/// Whether `subject` has left the topic of a thread that is called `thread_subject`.
#[must_use]
pub fn drifts(subject: &str, thread_subject: &str) -> bool {
    let rest = topic_words(subject);
    let thread = topic_words(thread_subject);
    // Without words on either side there is no topic to leave, or none to leave it for. Equal
    // rests are checked apart because they may consist of short words only.
    if rest.is_empty() || thread.is_empty() || rest == thread {
        return false;
    }
    let telling = |word: &&String| word.chars().count() >= TELLING_LETTERS;
    !rest.iter().filter(telling).any(|word| thread.contains(word))
}

/// The words of a subject that carry its topic, in lower case with single spaces between them.
#[must_use]
pub fn stripped(subject: &str) -> String {
    topic_words(subject).join(" ")
}

/// Whether the subject already says that it is a reply.
pub fn is_reply(subject: &str) -> bool {
    after_prefix(subject.trim_start()).is_some()
}

/// The subject without what says that it is a reply.
pub fn without_reply(subject: &str) -> &str {
    let mut rest = subject.trim();
    while let Some(after) = after_prefix(rest) {
        rest = after.trim();
    }
    rest
}

fn topic_words(subject: &str) -> Vec<String> {
    without_lead(subject)
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .filter(|word| STOP_WORDS.binary_search(&word.as_str()).is_err())
        .collect()
}

/// Reply prefixes and tags come in any order and number, so both are taken off until neither is.
fn without_lead(subject: &str) -> &str {
    let mut rest = subject.trim_start();
    while let Some(shorter) = after_tag(rest).or_else(|| after_prefix(rest)) {
        rest = shorter.trim_start();
    }
    rest
}

fn after_tag(text: &str) -> Option<&str> {
    let (_, rest) = text.strip_prefix('[')?.split_once(']')?;
    Some(rest)
}

fn after_prefix(text: &str) -> Option<&str> {
    PREFIXES.iter().find_map(|prefix| {
        let (head, rest) = text.split_at_checked(prefix.len())?;
        if !head.eq_ignore_ascii_case(prefix) {
            return None;
        }
        // East Asian mail programs write the wide colon.
        without_count(rest.trim_start()).strip_prefix([':', '：'])
    })
}

/// Some mail programs count the replies: `Re[2]:`.
fn without_count(text: &str) -> &str {
    let counted = text.strip_prefix('[').and_then(|t| t.split_once(']'));
    match counted {
        Some((count, rest)) if count.trim().bytes().all(|b| b.is_ascii_digit()) => rest.trim_start(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(subject: &str, thread_subject: &str, expected: bool) {
        assert_eq!(drifts(subject, thread_subject), expected, "{subject:?} in the thread {thread_subject:?}");
    }

    #[test]
    fn a_shared_word_keeps_the_topic() {
        check("Login fails on Safari", "Fix the login page", false);
        check("the page is blank", "Fix the login page", false);
        check("schema migration", "Migration of the users table", false);
        check("Done: parser", "Rewrite parser", false);
    }

    #[test]
    fn no_shared_word_is_drift() {
        check("Lunch on Friday", "Fix the login page", true);
        check("Flaky tests", "Migration of the users table", true);
        check("Rename crate", "Release notes", true);
        check("log", "login", true);
        check("migrations", "migration", true);
    }

    #[test]
    fn case_does_not_matter() {
        check("LOGIN BROKEN", "fix login", false);
        check("login broken", "FIX LOGIN", false);
        check("RELEASE", "Login", true);
    }

    #[test]
    fn a_reply_prefix_is_no_topic() {
        check("Re: login", "login", false);
        check("Re:", "login", false);
        check("Re: lunch", "Re: login", true);
        check("Fwd: lunch", "Fwd: login", true);
        check("AW: lunch", "AW: login", true);
        check("fw: login", "Login page", false);
        check("Re：登录页面", "登录页面", false);
    }

    #[test]
    fn prefixes_nest_and_may_be_spaced_or_counted() {
        check("RE: re: Fwd: login", "login", false);
        check("  Re : FW :Re:login", "login", false);
        check("Re[2]: ui", "ui", false);
        check("re [12] : Fwd: ui", "UI", false);
        check("Re[2]: lunch", "Re[2]: login", true);
        check("Re: Fwd: AW: Fw:", "login", false);
    }

    #[test]
    fn a_word_that_merely_begins_like_a_prefix_stays() {
        check("Rewrite: parser", "rewrite", false);
        check("Fwding tables", "fwding", false);
        check("Rest: pagination", "rest", false);
        check("award: pagination", "login", true);
    }

    #[test]
    fn a_leading_tag_is_no_topic() {
        check("[urgent] lunch", "[urgent] login", true);
        check("[bd-123] Login done", "[bd-123] login", false);
        check("[bd-123] Lunch", "[bd-123] login", true);
        check("[a][b] [c] ui", "ui", false);
        check("[bd-123]", "login", false);
        check("login", "[bd-123]", false);
    }

    #[test]
    fn tags_and_prefixes_mix() {
        check("Re: [urgent] Re: [bd-1] ui", "UI", false);
        check("[urgent] Fwd: lunch", "Re: [urgent] login", true);
        check("[x] Re[3]: [y] AW: ci", "[z] ci", false);
    }

    #[test]
    fn a_tag_further_in_or_left_open_counts_as_words() {
        check("lunch [login]", "login", false);
        check("[login lunch", "login", false);
        check("[] ui", "ui", false);
    }

    #[test]
    fn nothing_to_say_does_not_drift() {
        check("", "login", false);
        check("   ", "login", false);
        check("?!...", "login", false);
        check("", "", false);
        check("👍", "login", false);
    }

    #[test]
    fn nothing_to_drift_from_means_no_drift() {
        check("login", "", false);
        check("login", "Re: ", false);
        check("login", "a question for you", false);
        check("login", "---", false);
    }

    #[test]
    fn stop_words_alone_are_no_topic() {
        check("Any update on this?", "login", false);
        check("Thanks!", "login", false);
        check("I'm on it", "login", false);
        check("we don't have it yet", "login", false);
        check("Re: question", "login", false);
    }

    #[test]
    fn a_shared_stop_word_is_not_shared_topic() {
        check("the lunch", "the login", true);
        check("question about lunch", "question about login", true);
        check("lunch with you", "login with you", true);
    }

    #[test]
    fn short_words_prove_nothing_unless_the_rests_are_equal() {
        check("UI", "UI", false);
        check("ui!", "Re: the UI", false);
        check("UI", "CI", true);
        check("UI colours", "UI layout", true);
        check("go v2", "go v3", true);
        check("UI", "UI layout", true);
    }

    #[test]
    fn identical_subjects_never_drift() {
        check("Fix the login page", "Fix the login page", false);
        check("v2", "V2", false);
        check("fix: a b c", "Fix – (a, b, c)", false);
    }

    #[test]
    fn digits_are_words_too() {
        check("bd-123 is ready", "bd-123", false);
        check("bd-124 is ready", "bd-123", true);
        check("BD-1", "bd-1", false);
        check("bd-1", "bd-2", true);
        check("error 404", "404 page", false);
        check("utf8 names", "UTF8", false);
        check("utf16 names", "UTF8", true);
    }

    #[test]
    fn punctuation_separates_words() {
        check("src/login.rs", "login", false);
        check("snake_case_login", "login", false);
        check("«login»", "(login)", false);
        check("loginpage", "login-page", true);
    }

    #[test]
    fn unicode_words_are_compared_in_lower_case() {
        check("ÜBERSICHT fehlt", "Die übersicht", false);
        check("Straße gesperrt", "STRASSE", true);
        check("ошибка ВХОДА", "Страница входа", false);
        check("ΛΌΓΟΣ", "λόγος", false);
        check("昼食会", "登录页", true);
        check("naïve cache", "Naïve", false);
    }

    #[test]
    fn the_stripped_subject_keeps_the_topic_in_order() {
        let stripped_subject = stripped("Re: [bd-1] Fwd:  The LOGIN-page, for you!");
        assert_eq!(stripped_subject, "login page");
        assert_eq!(stripped("Re: [x] thanks"), "");
    }

    #[test]
    fn the_stop_words_are_sorted_for_the_binary_search() {
        assert!(STOP_WORDS.is_sorted_by(|a, b| a < b));
        assert!(STOP_WORDS.iter().all(|w| w.to_lowercase() == **w));
    }

    #[test]
    fn only_digits_count_replies() {
        assert_eq!(stripped("Re[2]: ui"), "ui");
        assert_ne!(stripped("Re[bug]: ui"), "ui");
    }

    #[test]
    fn a_subject_says_by_its_prefix_that_it_is_a_reply() {
        for subject in ["Re: login", "  RE[3]: login", "Fwd: login", "AW: login"] {
            assert!(is_reply(subject), "{subject}");
        }
        for subject in ["login", "[Re] login", "Rewrite: login", "Re login", ""] {
            assert!(!is_reply(subject), "{subject}");
        }
    }
}

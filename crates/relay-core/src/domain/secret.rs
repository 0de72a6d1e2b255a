//! Does a text seem to carry a credential? (Signal SECRET_SUSPECTED.)
//!
//! Only formats that announce themselves are known here, and what looks like a placeholder is let
//! pass: people stop reading a warning that is often wrong. The answer names the kind of the
//! credential and never the credential, so it may be stored and shown.
//!
//! The scan is linear in the text: what follows a prefix is read up to a fixed length, and the few
//! readers without such a limit cannot meet the same byte more than a few times.

use Charset::{Alnum, Base64, Base64Url, Hex, Path, Upper};

/// The bytes that the body of a credential may consist of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Charset {
    /// Capitals and digits.
    Upper,
    /// Digits and `a` to `f`; all issuers known here write small letters.
    Hex,
    Alnum,
    Base64,
    Base64Url,
    /// Base64url with slashes and full stops, for secrets that are part of an address.
    Path,
}

impl Charset {
    fn has(self, byte: u8) -> bool {
        match self {
            Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Hex => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
            Alnum => byte.is_ascii_alphanumeric(),
            Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'),
            Base64Url => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
            Path => Base64Url.has(byte) || matches!(byte, b'/' | b'.'),
        }
    }
}

/// A credential that is a prefix and a body. The prefix always has to stand at the start of a word.
struct Format {
    kind: &'static str,
    prefix: &'static str,
    charset: Charset,
    /// The least length of the body.
    length: usize,
    /// Whether the body has to end after exactly that length.
    exact: bool,
}

const fn at_least(kind: &'static str, prefix: &'static str, charset: Charset, length: usize) -> Format {
    Format { kind, prefix, charset, length, exact: false }
}

const fn exactly(kind: &'static str, prefix: &'static str, charset: Charset, length: usize) -> Format {
    Format { kind, prefix, charset, length, exact: true }
}

/// Lengths are those of the issuers, or somewhat less where an issuer has varied them.
const FORMATS: &[Format] = &[
    exactly("AWS access key id", "AKIA", Upper, 16),
    exactly("AWS access key id", "ASIA", Upper, 16),
    at_least("GitHub token", "ghp_", Alnum, 36),
    at_least("GitHub token", "gho_", Alnum, 36),
    at_least("GitHub token", "ghu_", Alnum, 36),
    at_least("GitHub token", "ghs_", Alnum, 36),
    at_least("GitHub token", "ghr_", Alnum, 36),
    at_least("GitHub token", "github_pat_", Base64Url, 50),
    at_least("GitLab token", "glpat-", Base64Url, 20),
    at_least("GitLab token", "gldt-", Base64Url, 20),
    at_least("GitLab token", "glrt-", Base64Url, 20),
    at_least("Slack token", "xoxa-", Base64Url, 24),
    at_least("Slack token", "xoxb-", Base64Url, 24),
    at_least("Slack token", "xoxp-", Base64Url, 24),
    at_least("Slack token", "xoxr-", Base64Url, 24),
    at_least("Slack token", "xoxs-", Base64Url, 24),
    at_least("Slack token", "xapp-1-", Base64Url, 24),
    at_least("Slack webhook", "hooks.slack.com/services/T", Path, 36),
    at_least("Discord webhook", "discord.com/api/webhooks/", Path, 80),
    at_least("Anthropic API key", "sk-ant-", Base64Url, 32),
    at_least("OpenAI API key", "sk-proj-", Base64Url, 40),
    at_least("OpenAI API key", "sk-svcacct-", Base64Url, 40),
    at_least("OpenAI API key", "sk-admin-", Base64Url, 40),
    at_least("OpenAI API key", "sk-", Alnum, 40),
    at_least("OpenRouter API key", "sk-or-v1-", Hex, 64),
    at_least("Groq API key", "gsk_", Alnum, 48),
    at_least("xAI API key", "xai-", Alnum, 70),
    exactly("Google API key", "AIza", Base64Url, 35),
    exactly("Google OAuth client secret", "GOCSPX-", Base64Url, 28),
    at_least("Google OAuth token", "ya29.", Base64Url, 60),
    at_least("Stripe live key", "sk_live_", Alnum, 24),
    at_least("Stripe live key", "rk_live_", Alnum, 24),
    at_least("Stripe webhook secret", "whsec_", Base64, 32),
    at_least("npm token", "npm_", Alnum, 36),
    at_least("PyPI token", "pypi-AgEI", Base64Url, 50),
    at_least("RubyGems API key", "rubygems_", Hex, 48),
    at_least("Docker Hub token", "dckr_pat_", Base64Url, 27),
    exactly("Twilio API key", "SK", Hex, 32),
    exactly("DigitalOcean token", "dop_v1_", Hex, 64),
    exactly("DigitalOcean token", "doo_v1_", Hex, 64),
    exactly("DigitalOcean token", "dor_v1_", Hex, 64),
    at_least("Hugging Face token", "hf_", Alnum, 34),
    at_least("Azure storage key", "AccountKey=", Base64, 80),
    at_least("Azure shared access key", "SharedAccessKey=", Base64, 40),
    at_least("Databricks token", "dapi", Hex, 32),
    at_least("Shopify token", "shpat_", Hex, 32),
    at_least("Linear API key", "lin_api_", Alnum, 40),
    at_least("Grafana token", "glsa_", Alnum, 32),
    at_least("Vault token", "hvs.", Base64Url, 24),
    exactly("age private key", "AGE-SECRET-KEY-1", Upper, 58),
];

/// The bytes with which a prefix may begin. Most bytes of a text are dismissed by this alone.
static FIRST_BYTES: [bool; 256] = {
    let mut first = [false; 256];
    let mut row = 0;
    while row < FORMATS.len() {
        first[FORMATS[row].prefix.as_bytes()[0] as usize] = true;
        row += 1;
    }
    first
};

/// The kind of the first credential that seems to stand in `text`.
#[must_use]
pub fn suspected(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().find_map(|(at, byte)| match byte {
        b':' if telegram_token(bytes, at) => Some("Telegram bot token"),
        b':' if url_with_password(bytes, at) => Some("database URL with password"),
        b'-' if private_key(bytes, at) => Some("private key"),
        b'e' if jwt(bytes, at) => Some("JSON Web Token"),
        b'S' if sendgrid_key(bytes, at) => Some("SendGrid API key"),
        _ if FIRST_BYTES[usize::from(*byte)] => listed(bytes, at),
        _ => None,
    })
}

fn listed(bytes: &[u8], at: usize) -> Option<&'static str> {
    if !starts_word(bytes, at) {
        return None;
    }
    let fits = |format: &&Format| matches_format(format, &bytes[at..]);
    FORMATS.iter().find(fits).map(|format| format.kind)
}

fn matches_format(format: &Format, text: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(format.prefix.as_bytes()) else {
        return false;
    };
    let Some((body, after)) = rest.split_at_checked(format.length) else {
        return false;
    };
    let ends = |byte: &u8| !(format.charset.has(*byte) || is_word(*byte));
    body.iter().all(|byte| format.charset.has(*byte))
        && (!format.exact || after.first().is_none_or(ends))
        && seems_random(body, format.charset)
}

/// Three base64url parts, of which the first two begin with `{"` encoded. The last is the
/// signature; a token without one opens nothing.
fn jwt(bytes: &[u8], at: usize) -> bool {
    // A hyphen would be a boundary elsewhere, but here it belongs to the alphabet. If the token
    // could begin after each hyphen, the parts would be read over and over.
    if bytes[..at].ends_with(b"-") || !starts_word(bytes, at) {
        return false;
    }
    let signature = after_jwt_part(&bytes[at..]).and_then(after_jwt_part);
    signature
        .and_then(|rest| rest.get(..20))
        .is_some_and(|start| base64url_run(start) == 20 && seems_random(start, Base64Url))
}

fn after_jwt_part(text: &[u8]) -> Option<&[u8]> {
    const SHORTEST: usize = 12;
    if !text.starts_with(b"eyJ") {
        return None;
    }
    let length = base64url_run(text);
    let rest = text[length..].strip_prefix(b".")?;
    (length >= SHORTEST).then_some(rest)
}

fn base64url_run(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| Base64Url.has(**b)).count()
}

/// `SG.`, 22 bytes, a full stop, 43 bytes.
fn sendgrid_key(bytes: &[u8], at: usize) -> bool {
    let Some(rest) = bytes[at..].strip_prefix(b"SG.") else {
        return false;
    };
    starts_word(bytes, at)
        && base64url_run(&rest[..rest.len().min(23)]) == 22
        && rest.get(22) == Some(&b'.')
        && rest.get(23..66).is_some_and(|key| base64url_run(key) == key.len() && seems_random(key, Base64Url))
}

/// The number of the bot, a colon (which stands at `colon`), `AA` and 33 more bytes.
fn telegram_token(bytes: &[u8], colon: usize) -> bool {
    let digits = bytes[..colon].iter().rev().take(11);
    let digits = digits.take_while(|byte| byte.is_ascii_digit()).count();
    let token = exactly("", ":AA", Base64Url, 33);
    (8..=10).contains(&digits) && matches_format(&token, &bytes[colon..])
}

/// The first line of any private key in PEM or PGP armour, and of no certificate or public key.
fn private_key(bytes: &[u8], at: usize) -> bool {
    const LONGEST_LABEL: usize = 64;
    let Some(rest) = bytes[at..].strip_prefix(b"-----BEGIN ") else {
        return false;
    };
    let rest = &rest[..rest.len().min(LONGEST_LABEL)];
    let in_label = |byte: &&u8| Upper.has(**byte) || **byte == b' ';
    let (label, after) = rest.split_at(rest.iter().take_while(in_label).count());
    let secret = label.ends_with(b"PRIVATE KEY") || label.ends_with(b"PRIVATE KEY BLOCK");
    secret && after.starts_with(b"-----")
}

const SCHEMES: &[&str] = &["postgres", "postgresql", "mysql", "mariadb", "mongodb", "redis", "rediss", "amqp", "amqps"];

/// `scheme://user:password@host`, of which the first colon stands at `colon`.
fn url_with_password(bytes: &[u8], colon: usize) -> bool {
    let Some(rest) = bytes[colon..].strip_prefix(b"://") else {
        return false;
    };
    if !ends_with_scheme(&bytes[..colon]) {
        return false;
    }
    // The authority ends at a slash, and every URL has slashes before its own: no byte is read
    // for two URLs.
    let ends = |b: &u8| b.is_ascii_whitespace() || b"/?#\"'`<>|\\".contains(b);
    let end = rest.iter().position(ends).unwrap_or(rest.len());
    let Some((login, host)) = split_last(&rest[..end], b'@') else {
        return false;
    };
    let mut parts = login.splitn(2, |byte| *byte == b':');
    match (parts.next(), parts.next()) {
        (Some(user), Some(password)) => !host.is_empty() && !stands_in(user, password),
        _ => false,
    }
}

fn ends_with_scheme(before: &[u8]) -> bool {
    let before = without_driver(before);
    SCHEMES.iter().any(|scheme| {
        let Some((head, tail)) = split_end(before, scheme.len()) else {
            return false;
        };
        tail.eq_ignore_ascii_case(scheme.as_bytes()) && starts_word(before, head.len())
    })
}

/// A scheme may name a driver or a way to look up the host: `mongodb+srv`, `mysql+pymysql`.
fn without_driver(before: &[u8]) -> &[u8] {
    const LONGEST_DRIVER: usize = 24;
    let driver = before.iter().rev().take(LONGEST_DRIVER);
    let driver = driver.take_while(|byte| is_word(**byte)).count();
    let head = &before[..before.len() - driver];
    head.strip_suffix(b"+").unwrap_or(before)
}

fn split_end(bytes: &[u8], length: usize) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(bytes.len().checked_sub(length)?)
}

fn split_last(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().rposition(|byte| *byte == separator)?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

/// Whether a password only holds the place of one: a variable, a mask, or a word from a manual.
fn stands_in(user: &[u8], password: &[u8]) -> bool {
    const WORDS: &[&str] = &["pass", "password", "passwd", "pw", "pwd", "secret", "example", "%s"];
    let all_one_byte = password.windows(2).all(|pair| pair[0] == pair[1]);
    let variable = matches!(password, [b'$' | b'{' | b'[' | b'*' | b'.', ..] | [b'%', b'(', ..]);
    // The same word twice is the usual login of a database on the developer's own machine.
    let usual = password == user || WORDS.iter().any(|word| password.eq_ignore_ascii_case(word.as_bytes()));
    all_one_byte || variable || usual || says_so(password)
}

/// A real key is drawn at random: it has many different bytes, no long run of one byte, and does
/// not read like words. Capitals with digits are exempt from the last, for chance may omit digits.
fn seems_random(body: &[u8], charset: Charset) -> bool {
    const LEAST_DISTINCT: usize = 6;
    const LONGEST_RUN: usize = 5;
    let mut seen = [false; 256];
    body.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    let distinct = seen.iter().filter(|seen| **seen).count();
    let longest_run = body.chunk_by(|a, b| a == b).map(<[u8]>::len).max();
    distinct >= LEAST_DISTINCT
        && longest_run <= Some(LONGEST_RUN)
        && (charset == Upper || !reads_like_words(body))
        && !says_so(body)
}

/// Words have hardly a digit or capital in them (`token-of-project-42`), or else only capitals.
/// In a random body every other byte is a digit or a capital; one in six is a safe bound.
fn reads_like_words(body: &[u8]) -> bool {
    let strong = body.iter().filter(|byte| Upper.has(**byte)).count();
    let only_capitals = !body.iter().any(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    strong * 6 < body.len() || only_capitals
}

/// Whether the text calls itself a placeholder.
fn says_so(body: &[u8]) -> bool {
    const WORDS: &[&str] = &["example", "placeholder", "redacted", "your"];
    WORDS.iter().any(|word| {
        let mut windows = body.windows(word.len());
        windows.any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
    })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a word may start at `at`. Texts are often quoted source or JSON, so the letter of an
/// escape (`\n`, `%20`) does not belong to the word after it.
fn starts_word(bytes: &[u8], at: usize) -> bool {
    match &bytes[..at] {
        [] | [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => true,
        [.., before] => !is_word(*before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that look drawn at random, of the given alphabet. Samples are put together only when
    /// the tests run, so that no secret scanner takes this file for a leak.
    fn body(alphabet: &str, length: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        let pick = |i: usize| letters[(i * 7 + i * i * 3 + 5) % letters.len()];
        (0..length).map(pick).collect()
    }

    const CAPITALS: &str = "QWERTZUIOPASDFGHJKLYXCVBNM234567X";
    const LETTERS: &str = "qwertzuiopQWERTZUIOP1234567890asdfghjklASDFGHJKLm";
    const HEX: &str = "0123456789abcdef0";

    /// The sample stands alone and in the midst of a text; both have to be found.
    #[track_caller]
    fn check(sample: &str, expected: Option<&str>) {
        assert_eq!(suspected(sample), expected, "{sample:?}");
        let inside = format!("Please use this: \"{sample}\" – as agreed.\n");
        assert_eq!(suspected(&inside), expected, "{inside:?}");
    }

    /// The whole sample has to be found; its first few bytes prove nothing yet.
    #[track_caller]
    fn check_prefix(kind: &str, prefix: [&str; 2], alphabet: &str, length: usize) {
        let prefix = prefix.concat();
        check(&format!("{prefix}{}", body(alphabet, length)), Some(kind));
        check(&format!("{prefix}{}", body(alphabet, 8)), None);
    }

    #[test]
    fn keys_of_clouds_are_suspected() {
        check_prefix("AWS access key id", ["AK", "IA"], CAPITALS, 16);
        check_prefix("AWS access key id", ["AS", "IA"], CAPITALS, 16);
        check_prefix("Google API key", ["AI", "za"], LETTERS, 35);
        check_prefix("Google OAuth client secret", ["GOC", "SPX-"], LETTERS, 28);
        check_prefix("Google OAuth token", ["ya", "29."], LETTERS, 100);
        check_prefix("DigitalOcean token", ["dop", "_v1_"], HEX, 64);
        check_prefix("DigitalOcean token", ["doo", "_v1_"], HEX, 64);
        check_prefix("DigitalOcean token", ["dor", "_v1_"], HEX, 64);
        check_prefix("Azure storage key", ["Account", "Key="], LETTERS, 86);
        check_prefix("Azure shared access key", ["SharedAccess", "Key="], LETTERS, 43);
        check_prefix("Databricks token", ["da", "pi"], HEX, 32);
    }

    #[test]
    fn tokens_of_forges_and_registries_are_suspected() {
        for prefix in ["p_", "o_", "u_", "s_", "r_"] {
            check_prefix("GitHub token", ["gh", prefix], LETTERS, 36);
        }
        check_prefix("GitHub token", ["github", "_pat_"], LETTERS, 82);
        check_prefix("GitLab token", ["gl", "pat-"], LETTERS, 20);
        check_prefix("GitLab token", ["gl", "dt-"], LETTERS, 20);
        check_prefix("GitLab token", ["gl", "rt-"], LETTERS, 20);
        check_prefix("npm token", ["np", "m_"], LETTERS, 36);
        check_prefix("PyPI token", ["pypi-", "AgEI"], LETTERS, 150);
        check_prefix("RubyGems API key", ["ruby", "gems_"], HEX, 48);
        check_prefix("Docker Hub token", ["dckr", "_pat_"], LETTERS, 27);
    }

    #[test]
    fn keys_of_models_are_suspected() {
        check_prefix("Anthropic API key", ["sk-", "ant-api03-"], LETTERS, 95);
        check_prefix("OpenAI API key", ["sk", "-"], LETTERS, 48);
        check_prefix("OpenAI API key", ["sk-", "proj-"], LETTERS, 120);
        check_prefix("OpenAI API key", ["sk-", "svcacct-"], LETTERS, 120);
        check_prefix("OpenAI API key", ["sk-", "admin-"], LETTERS, 120);
        check_prefix("OpenRouter API key", ["sk-", "or-v1-"], HEX, 64);
        check_prefix("Groq API key", ["gs", "k_"], LETTERS, 52);
        check_prefix("xAI API key", ["xa", "i-"], LETTERS, 80);
        check_prefix("Hugging Face token", ["h", "f_"], LETTERS, 34);
    }

    #[test]
    fn keys_of_services_are_suspected() {
        for prefix in ["a-", "b-", "p-", "r-", "s-"] {
            check_prefix("Slack token", ["xox", prefix], LETTERS, 50);
        }
        check_prefix("Slack token", ["xapp", "-1-"], LETTERS, 60);
        check_prefix("Stripe live key", ["sk_", "live_"], LETTERS, 24);
        check_prefix("Stripe live key", ["rk_", "live_"], LETTERS, 24);
        check_prefix("Stripe webhook secret", ["wh", "sec_"], LETTERS, 32);
        check_prefix("Twilio API key", ["S", "K"], HEX, 32);
        check_prefix("Shopify token", ["shp", "at_"], HEX, 32);
        check_prefix("Linear API key", ["lin", "_api_"], LETTERS, 40);
        check_prefix("Grafana token", ["gl", "sa_"], LETTERS, 32);
        check_prefix("Vault token", ["hv", "s."], LETTERS, 95);
        check_prefix("age private key", ["AGE-SECRET", "-KEY-1"], CAPITALS, 58);
    }

    #[test]
    fn every_format_has_a_sample_that_is_suspected() {
        for format in FORMATS {
            let alphabet = match format.charset {
                Upper => CAPITALS,
                Hex => HEX,
                _ => LETTERS,
            };
            let sample = format!("{}{}", format.prefix, body(alphabet, format.length));
            check(&sample, Some(format.kind));
        }
    }

    #[test]
    fn a_slack_token_may_begin_with_nothing_but_digits() {
        let sample = format!("xox{}-123456789012-1234567890123-{}", "b", body(LETTERS, 24));
        check(&sample, Some("Slack token"));
    }

    #[test]
    fn webhooks_are_suspected() {
        let (team, channel, key) = (body(CAPITALS, 8), body(CAPITALS, 9), body(LETTERS, 24));
        let slack = format!("https://hooks.{}/services/T{team}/B{channel}/{key}", "slack.com");
        check(&slack, Some("Slack webhook"));
        let (number, key) = (body("1234567890", 18), body(LETTERS, 68));
        let discord = format!("https://{}/api/webhooks/{number}/{key}", "discord.com");
        check(&discord, Some("Discord webhook"));
    }

    #[test]
    fn tokens_in_parts_are_suspected() {
        let (short, long) = (body(LETTERS, 22), body(LETTERS, 43));
        check(&format!("S{}.{short}.{long}", "G"), Some("SendGrid API key"));
        let jwt = format!("{0}J{short}.{0}J{long}.{long}", "ey");
        check(&jwt, Some("JSON Web Token"));
        check(&format!("Authorization: Bearer {jwt}"), Some("JSON Web Token"));
        let telegram = format!("12345678{}:A{}", "90", format_args!("A{}", body(LETTERS, 33)));
        check(&telegram, Some("Telegram bot token"));
        check(&format!("/bot{telegram}/getMe"), Some("Telegram bot token"));
    }

    #[test]
    fn private_keys_of_all_kinds_are_suspected() {
        let kinds = ["", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "ANY ", "SSH2 ENCRYPTED "];
        for kind in kinds {
            let header = format!("-----BEGIN {kind}{} KEY-----", "PRIVATE");
            check(&header, Some("private key"));
            check(&format!("\\n{header}\\nMIIE"), Some("private key"));
        }
        let pgp = format!("-----BEGIN PGP {} KEY BLOCK-----", "PRIVATE");
        check(&pgp, Some("private key"));
    }

    #[test]
    fn database_urls_with_a_password_are_suspected() {
        let rows = [
            ("postgres", "app:hunter2@db/prod"),
            ("postgresql", "app:hunter2@db.internal:5432/prod"),
            ("postgresql+psycopg", "app:hunter2@db/prod"),
            ("POSTGRES", "app:hunter2@db"),
            ("jdbc:mysql", "root:t00r@127.0.0.1"),
            ("mysql+pymysql", "root:t00r@127.0.0.1"),
            ("mariadb", "root:t00r@127.0.0.1"),
            ("mongodb", "u:s3cr3t@a:27017,b:27017/x"),
            ("mongodb+srv", "u:p%40ss1@cluster0.abc.mongodb.net"),
            ("redis", ":s3cr3t@cache:6379/0"),
            ("rediss", "default:p@ss@cache:6379"),
            ("amqp", "guest:g,u;3(s)t@mq"),
            ("amqps", "guest:gu3st@mq"),
        ];
        for (scheme, rest) in rows {
            let url = format!("{scheme}:{}{rest}", "//");
            check(&url, Some("database URL with password"));
            check(&format!("X\\n{url}"), Some("database URL with password"));
        }
    }

    #[test]
    fn the_word_before_a_credential_may_end_in_many_ways() {
        let token = format!("{}{}", "ghp", format_args!("_{}", body(LETTERS, 36)));
        for before in ["=", ":", "'", "(", "/", "\n", "\\n", "\\t", "%20", "ü", "-"] {
            check(&format!("x{before}{token}"), Some("GitHub token"));
        }
        for before in ["x", "_", "7"] {
            check(&format!("{before}{token}"), None);
        }
    }

    #[test]
    fn the_first_of_several_credentials_is_named() {
        let aws = format!("{}{}", "AKI", format_args!("A{}", body(CAPITALS, 16)));
        let npm = format!("{}{}", "npm", format_args!("_{}", body(LETTERS, 36)));
        check(&format!("{aws} {npm}"), Some("AWS access key id"));
        check(&format!("{npm} {aws}"), Some("npm token"));
    }

    #[test]
    fn prose_is_not_suspected() {
        check("", None);
        check("The AWS key goes into the vault, never into a mail.", None);
        check("A task-based, risk-averse disk-to-disk copy; ask-me-anything.", None);
        check("Set npm_config_registry and hf_home before you start.", None);
        check("See the ghp_ and github_pat_ prefixes in the manual.", None);
        check("SG. is short for Singapore, SK for Slovakia.", None);
        check("eyJ is how a token begins.", None);
        check("Größe: 1234567890:AA ist kein Token.", None);
    }

    #[test]
    fn hashes_and_identifiers_are_not_suspected() {
        check("d41d8cd98f00b204e9800998ecf8427e", None);
        check("da39a3ee5e6b4b0d3255bfef95601890afd80709", None);
        let sha256 = body(HEX, 64);
        check(&sha256, None);
        check(&format!("sha256:{sha256}"), None);
        check("550e8400-e29b-41d4-a716-446655440000", None);
        check("01ARZ3NDEKTSV4RRFFQ69G5FAV", None);
        check("task_sk_liverpool_2024_north_stand_seats", None);
        check("registry+https://github.com/rust-lang/crates.io-index#0.4.18", None);
    }

    #[test]
    fn placeholders_are_not_suspected() {
        check("sk-...", None);
        check(&format!("sk-{}", "x".repeat(48)), None);
        check(&format!("sk-ant-api03-{}", "x".repeat(40)), None);
        check("sk-ant-your-key-goes-here-and-nowhere-else-2024", None);
        check("ghp_xxx", None);
        check(&format!("ghp_{}", "X".repeat(40)), None);
        check("ghp_<token>", None);
        check("AKIAEXAMPLE", None);
        check(&format!("AKIA{}", "IOSFODNN7EXAMPLE"), None);
        check(&format!("AKIA{}", "X".repeat(16)), None);
        check("glpat-personal-access-token-of-the-bot", None);
        check("glpat-token-of-project-42-for-the-bot", None);
        check("glpat-YOUR-PERSONAL-ACCESS-TOKEN", None);
        check("glpat-THE-PERSONAL-ACCESS-TOKEN", None);
        check("xoxb-not-a-real-token-at-all-really", None);
        check("AccountKey=...;EndpointSuffix=core.windows.net", None);
        check("-----BEGIN ... KEY-----", None);
        let slack = format!("hooks.{}/services/", "slack.com");
        check(&format!("{slack}T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"), None);
    }

    #[test]
    fn keys_of_the_wrong_length_are_not_suspected() {
        check(&format!("AKIA{}", body(CAPITALS, 15)), None);
        check(&format!("AKIA{}", body(CAPITALS, 17)), None);
        check(&format!("AIza{}", body(LETTERS, 36)), None);
        check(&format!("SK{}", body(HEX, 31)), None);
        check(&format!("SK{}", body(HEX, 33)), None);
        check(&format!("RISK{}", body(HEX, 32)), None);
        check(&format!("ghp_{}", body(LETTERS, 35)), None);
        check(&format!("1234567:AA{}", body(LETTERS, 33)), None);
        check(&format!("12345678901:AA{}", body(LETTERS, 33)), None);
    }

    #[test]
    fn public_halves_are_not_suspected() {
        check("-----BEGIN CERTIFICATE-----", None);
        check("-----BEGIN PUBLIC KEY-----", None);
        check("-----BEGIN PGP PUBLIC KEY BLOCK-----", None);
        check("-----BEGIN PGP SIGNED MESSAGE-----", None);
        check(&format!("-----END RSA {} KEY-----", "PRIVATE"), None);
        check(&format!("pk_live_{}", body(LETTERS, 24)), None);
        check(&format!("sk_test_{}", body(LETTERS, 24)), None);
    }

    #[test]
    fn tokens_without_all_their_parts_are_not_suspected() {
        let (short, long) = (body(LETTERS, 22), body(LETTERS, 43));
        check(&format!("eyJ{short}.eyJ{long}"), None);
        check(&format!("eyJ{short}.eyJ{long}."), None);
        check(&format!("eyJ{short}.{long}.{long}"), None);
        check(&format!("eyJ{short} .eyJ{long}.{long}"), None);
        check(&format!("SG.{short}{long}"), None);
        check(&format!("SG.{long}.{short}"), None);
    }

    #[test]
    fn urls_without_a_password_are_not_suspected() {
        check("postgres://localhost:5432/app", None);
        check("postgres://app@localhost/app", None);
        check("postgres://app:@localhost/app", None);
        check("redis://cache:6379/0?owner=a@b.c", None);
        check("mongodb://a:27017,b:27017/?authSource=x@y", None);
        check("https://example.org:8080/@user:name", None);
        check("ssh://git@github.com:22/a/b.git", None);
        check("file:///etc/hosts", None);
        check("Write to mailto:a@b.c or see redis: x@y", None);
        check(&format!("notpostgres:{}app:hunter2@db", "//"), None);
    }

    #[test]
    fn urls_with_a_placeholder_for_the_password_are_not_suspected() {
        for password in [
            "password",
            "PASS",
            "$PGPASS",
            "${PGPASS}",
            "{{ pw }}",
            "***",
            "xxxx",
            "[pw]",
            "%s",
            "%(pw)s",
            "<password>",
            "...",
            "app",
            "your-password",
            "REDACTED",
        ] {
            check(&format!("postgres:{}app:{password}@db/app", "//"), None);
        }
    }

    /// A reader that goes over its bytes again and again would make this test last for minutes.
    #[test]
    fn large_hostile_texts_are_scanned_once() {
        let units = [
            "eyJ-",
            "eyJ.",
            "eyJ ",
            "\\neyJ",
            "eyJeyJeyJeyJ.eyJeyJeyJeyJ.",
            "eyJeyJeyJ.",
            "sk-",
            "sk-ant-",
            "SG.",
            "-----BEGIN ",
            "-",
            "\\n",
            "1234567890:AA",
            "postgres://",
            "postgres://a:b",
            "://",
            "+",
            "%20eyJ",
            "ghp_",
            ":",
            "@",
        ];
        for unit in units {
            let text = unit.repeat(256 * 1024 / unit.len());
            assert_eq!(suspected(&text), None, "{unit:?}");
        }
    }
}

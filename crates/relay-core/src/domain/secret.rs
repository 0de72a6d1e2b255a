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
mod tests;

//! What looks like a credential, and what only pretends to. The samples are put together at test time, so that no
//! scanner takes this file for a leak.

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

#[test]
fn what_goes_on_after_its_length_is_not_a_key_of_that_length() {
    let aws = format!("{}{}", "AKI", format_args!("A{}", body(CAPITALS, 16)));
    check(&format!("{aws}x"), None);
    let google = format!("{}{}", "AIz", format_args!("a{}", body(LETTERS, 35)));
    check(&format!("{google}-"), None);
    check(&format!("{google}."), Some("Google API key"));
}

#[test]
fn every_part_of_a_token_must_be_right() {
    let (short, long) = (body(LETTERS, 22), body(LETTERS, 43));
    let dull = "a".repeat(43);
    for (key, separator, rest) in [(&short[1..], ".", &*long), (&*short, "-", &*long), (&*short, ".", &*dull)] {
        check(&format!("S{}.{key}{separator}{rest}", "G"), None);
    }
    check(&format!("xS{}.{short}.{long}", "G"), None);
    let unsigned = format!("{0}J{short}.{0}J{long}.", "ey");
    check(&format!("{unsigned}{}", "a".repeat(20)), None);
    check(&format!("{unsigned}{}.{}", &long[..10], &long[..12]), None);
}

#[test]
fn a_login_without_a_host_opens_nothing() {
    check(&format!("postgres:{}app:hunter2@", "//"), None);
}

#[test]
fn one_digit_or_capital_in_six_is_random_enough() {
    let rarely = "abcde1fghij2klmno3pqrst4uvwxy5zabcd6";
    check(&format!("gh{}_{rarely}", "p"), Some("GitHub token"));
    check(&format!("gh{}_{}", "p", rarely.replace('6', "z")), None);
}

#[test]
fn a_percent_sign_is_an_escape_only_before_two_hex_digits() {
    let token = format!("gh{}_{}", "p", body(LETTERS, 36));
    check(&format!("%2f{token}"), Some("GitHub token"));
    for before in ["%zz", "%az", "%za"] {
        check(&format!("{before}{token}"), None);
    }
}

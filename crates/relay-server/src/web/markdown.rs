//! Markdown of others, made safe to show: first as events, in which markup becomes text, pictures their words and links what they
//! truly lead to; then through an allow-list, so that a mistake in the first lets nothing through.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};
use askama::filters::HtmlSafe;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};
use relay_core::domain::plain;

/// Deeper than this nobody follows, and a browser has to.
const DEPTH: usize = 24;

/// Elements that a message may be made of; of these only links and numbered lists have attributes.
const ELEMENTS: [&str; 22] = [
    "a",
    "blockquote",
    "br",
    "code",
    "del",
    "em",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
];

/// Text that is safe to show as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Markup(String);

impl Markup {
    /// In bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl HtmlSafe for Markup {}

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

static GUARD: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut guard = Builder::empty();
    guard
        .tags(HashSet::from(ELEMENTS))
        .tag_attributes(HashMap::from([("a", HashSet::from(["href"])), ("ol", HashSet::from(["start"]))]))
        .url_schemes(HashSet::from(["http", "https"]))
        .url_relative(UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer nofollow"))
        .set_tag_attribute_value("a", "target", "_blank");
    guard
});

/// A message's text as it is shown.
pub fn render(text: &str) -> Markup {
    let plain = plain::escape(text);
    let mut writer = Writer::default();
    for event in Parser::new_ext(&plain, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        writer.take(event);
    }
    let mut raw = String::new();
    html::push_html(&mut raw, writer.events.into_iter());
    Markup(GUARD.clean(&raw).to_string())
}

/// What was opened, and how it will be closed.
enum Open {
    /// As it is.
    Kept,
    /// It leaves nothing but what is in it.
    Dropped,
    /// What it leads to is said after its words, where they do not say it.
    Told { address: String, words: String, is_link: bool },
}

#[derive(Default)]
struct Writer<'a> {
    events: Vec<Event<'a>>,
    open: Vec<Open>,
}

impl<'a> Writer<'a> {
    fn take(&mut self, event: Event<'a>) {
        match event {
            Event::Start(tag) => self.begin(tag),
            Event::End(end) => self.end(end),
            Event::Html(text) | Event::InlineHtml(text) => self.events.push(Event::Text(text)),
            Event::Text(text) | Event::Code(text) if self.is_told() => {
                self.say(&text);
                self.events.push(Event::Text(text));
            }
            event => self.events.push(event),
        }
    }

    fn is_told(&self) -> bool {
        self.open.iter().any(|open| matches!(open, Open::Told { .. }))
    }

    fn say(&mut self, text: &str) {
        for open in &mut self.open {
            if let Open::Told { words, .. } = open {
                words.push_str(text);
            }
        }
    }

    fn begin(&mut self, tag: Tag<'a>) {
        let is_deep = self.open.len() >= DEPTH;
        let open = match tag {
            _ if is_deep => Open::Dropped,
            Tag::Image { dest_url, .. } => told(&dest_url, false),
            Tag::Link { dest_url, title: _, id, link_type } => match host(&dest_url) {
                Some(_) => {
                    let address = dest_url.to_string();
                    self.events.push(Event::Start(Tag::Link { link_type, dest_url, title: "".into(), id }));
                    told(&address, true)
                }
                None => told(&dest_url, false),
            },
            Tag::HtmlBlock => self.keep(Tag::Paragraph),
            Tag::Heading { level, .. } => {
                self.keep(Tag::Heading { level: below(level), id: None, classes: Vec::new(), attrs: Vec::new() })
            }
            tag => self.keep(tag),
        };
        self.open.push(open);
    }

    fn keep(&mut self, tag: Tag<'a>) -> Open {
        self.events.push(Event::Start(tag));
        Open::Kept
    }

    fn end(&mut self, end: TagEnd) {
        match (self.open.pop(), end) {
            (Some(Open::Kept), TagEnd::HtmlBlock) => self.events.push(Event::End(TagEnd::Paragraph)),
            (Some(Open::Kept), TagEnd::Heading(level)) => self.events.push(Event::End(TagEnd::Heading(below(level)))),
            (Some(Open::Kept), end) => self.events.push(Event::End(end)),
            (Some(Open::Told { address, words, is_link }), end) => {
                if is_link {
                    self.events.push(Event::End(end));
                }
                let told = if is_link { host(&address).unwrap_or_default() } else { &address };
                if !says(&words, &address) {
                    self.events.push(Event::Text(format!(" ({told})").into()));
                }
            }
            (Some(Open::Dropped) | None, _) => {}
        }
    }
}

fn told(address: &str, is_link: bool) -> Open {
    Open::Told { address: address.to_owned(), words: String::new(), is_link }
}

/// Whether the words are the address itself.
fn says(words: &str, address: &str) -> bool {
    let bare = address.split_once("://").map_or(address, |(_, rest)| rest);
    words == address || words == bare || address.is_empty()
}

/// Where a link leads, for an address that may be one. What stands before an `@` only deceives, a host of odd characters is one
/// that a browser may read otherwise, and nobody's message leads to this machine: the page itself is here.
fn host(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    let is_known = !authority.is_empty() && authority.chars().all(is_plain) && !is_here(authority);
    (is_web && is_known).then_some(authority)
}

/// Whether a browser takes it for this machine. Numbers have too many spellings to tell which are: none is a link.
fn is_here(authority: &str) -> bool {
    let name = authority.split(':').next().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    last == "localhost" || last.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty()
}

/// The page has headings of its own above those of a message.
fn below(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H4,
        HeadingLevel::H2 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

#[cfg(test)]
mod corpus;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(render(text).to_string().trim_end(), expected, "{text:?}");
    }

    const REL: &str = "target=\"_blank\" rel=\"noopener noreferrer nofollow\"";

    #[test]
    fn what_people_write_is_shown_as_they_meant_it() {
        check("Only *you* and **me** ~~not~~", "<p>Only <em>you</em> and <strong>me</strong> <del>not</del></p>");
        check("1. one\n2. two", "<ol>\n<li>one</li>\n<li>two</li>\n</ol>");
        check("3. three", "<ol start=\"3\">\n<li>three</li>\n</ol>");
        check("`a < b`", "<p><code>a &lt; b</code></p>");
        check("```rust\nlet a = 1;\n```", "<pre><code>let a = 1;\n</code></pre>");
        check("> said", "<blockquote>\n<p>said</p>\n</blockquote>");
        check("# One\n## Two\n### Three", "<h4>One</h4>\n<h5>Two</h5>\n<h6>Three</h6>");
        let table = "<table><thead><tr><th>a</th></tr></thead><tbody>\n<tr><td>1</td></tr>\n</tbody></table>";
        check("| a |\n|:--|\n| 1 |", table);
    }

    #[test]
    fn a_link_says_where_it_leads() {
        let link = |href: &str, words: &str| format!("<a href=\"{href}\" {REL}>{words}</a>");
        check("<https://a.example/x>", &format!("<p>{}</p>", link("https://a.example/x", "https://a.example/x")));
        check("[a.example/x](https://a.example/x)", &format!("<p>{}</p>", link("https://a.example/x", "a.example/x")));
        check(
            "[the guide](https://a.example/x)",
            &format!("<p>{} (a.example)</p>", link("https://a.example/x", "the guide")),
        );
        check(
            "[x](http://a.example:8080/?q=1&r=2 \"a title\")",
            &format!("<p>{} (a.example:8080)</p>", link("http://a.example:8080/?q=1&amp;r=2", "x")),
        );
    }

    #[test]
    fn what_deceives_and_what_leads_to_this_machine_is_text() {
        for address in [
            "https://good.example@evil.example/",
            "http://127.0.0.1:7717/p/x/write?to=%40all",
            "http://localhost:7717/",
            "http://relay.localhost/",
            "http://LOCALHOST./",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://[::1]:7717/",
            "https://\u{430}pple.com/",
        ] {
            check(&format!("[x]({address})"), &format!("<p>x ({address})</p>"));
        }
    }

    #[test]
    fn what_is_no_address_of_the_web_is_text() {
        check("[x](javascript:alert(1))", "<p>x (javascript:alert(1))</p>");
        check("[x](JaVaScRiPt://a.example/%0aalert(1))", "<p>x (JaVaScRiPt://a.example/%0aalert(1))</p>");
        check("[x](data:text/html,a)", "<p>x (data:text/html,a)</p>");
        check("[x](/p/project/retire)", "<p>x (/p/project/retire)</p>");
        check("[x](//evil.example)", "<p>x (//evil.example)</p>");
        check("[x](https:evil.example)", "<p>x (https:evil.example)</p>");
        check("[x](https:///evil.example)", "<p>x (https:///evil.example)</p>");
        check("[x](mailto:a@evil.example)", "<p>x (mailto:a@evil.example)</p>");
        check("<a@evil.example>", "<p>a@evil.example</p>");
        check("[x](https://evil.example\\\\@good.example/)", "<p>x (https://evil.example\\@good.example/)</p>");
        check("[x](https://good.example%2f.evil.example/)", "<p>x (https://good.example%2f.evil.example/)</p>");
        check("[x](#m7)", "<p>x (#m7)</p>");
        check("[x]()", "<p>x</p>");
    }

    #[test]
    fn a_picture_is_its_words() {
        check("![a cat](https://a.example/cat.png)", "<p>a cat (https://a.example/cat.png)</p>");
        check("![](http://a.example/pixel)", "<p> (http://a.example/pixel)</p>");
        let linked = format!("<p><a href=\"https://b.example\" {REL}>cat (https://a.example/c)</a> (b.example)</p>");
        check("[![cat](https://a.example/c)](https://b.example)", &linked);
    }

    #[test]
    fn markup_is_text() {
        check("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>");
        check("a <img src=x onerror=alert(1)> b", "<p>a &lt;img src=x onerror=alert(1)&gt; b</p>");
        check("<b>bold</b>", "<p>&lt;b&gt;bold&lt;/b&gt;</p>");
        check("&lt;script&gt;", "<p>&lt;script&gt;</p>");
        check("```<script>\nx\n```", "<pre><code>x\n</code></pre>");
        check("```x\" onclick=\"alert(1)\ny\n```", "<pre><code>y\n</code></pre>");
        let quoted = format!("<p><a href=\"https://a.example/%22onclick=%22alert(1)\" {REL}>x</a> (a.example)</p>");
        check("[x](https://a.example/\"onclick=\"alert(1))", &quoted);
        check("<!-- gone -->", "<p>&lt;!-- gone --&gt;</p>");
    }

    #[test]
    fn what_is_not_seen_is_written_out() {
        check("a\u{202e}b\u{200b}c\u{1b}[31m", "<p>a\\u{202e}b\\u{200b}c\\u{1b}[31m</p>");
        check("[x](https://a\u{200b}.example/)", "<p>x (https://a\\u{200b}.example/)</p>");
    }

    #[test]
    fn however_deep_it_is_there_is_an_end() {
        let deep = render(&format!("{}end", "> ".repeat(5_000))).to_string();
        assert!(deep.contains("end"));
        assert!(deep.matches("<blockquote>").count() <= DEPTH, "{}", deep.len());
        let lists: String = (0..200).map(|depth| format!("{}- {depth}\n", "  ".repeat(depth))).collect();
        assert!(render(&lists).to_string().matches("<ul>").count() <= DEPTH);
        // Each picture remembers the words in it, to say where it is where they do not.
        let pictures = render(&format!("{}words{}", "![".repeat(2_000), "](a)".repeat(2_000))).to_string();
        assert!(pictures.contains("words") && pictures.matches("(a)").count() <= DEPTH, "{}", pictures.len());
    }
}

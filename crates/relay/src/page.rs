//! The human's page, from the side of the command that opens it: a link for the server that listens, and a browser for the link.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use owo_colors::OwoColorize;
use relay_server::web;

use crate::output::Output;
use crate::{environment, process};

/// One who does not answer within this time is no server of this machine's.
const KNOCK: Duration = Duration::from_secs(5);
/// More than the page has on which a link is opened.
const MOST_BYTES: u64 = 256 * 1024;
/// What shows a link to a person, where no variable says it.
const USUAL: [&str; 2] = ["xdg-open", "open"];

/// A link that opens the page once.
pub struct Page {
    /// Where nobody knows under which name the server is reached, only what comes after the name.
    pub link: String,
    pub text: String,
    /// The command that shows it.
    opener: Option<Vec<String>>,
}

impl Page {
    /// Of a server that is reached from elsewhere nobody here knows how; the name that it was given is the best guess.
    pub fn new(listens: SocketAddr, name: Option<&str>, code: &str) -> Self {
        let place = match (listens.ip().is_loopback(), name) {
            (false, Some(name)) => format!("http://{name}:{}", listens.port()),
            (false, None) if listens.ip().is_unspecified() => String::new(),
            _ => format!("http://{listens}"),
        };
        let link = format!("{place}/open#{code}");
        let opener = if place.is_empty() { None } else { opener(&link) };
        let how = match (&opener, place.is_empty()) {
            (_, true) => "under a name of this server",
            (Some(_), false) => "a browser is asked to open it",
            (None, false) => "there is no browser to open it here: open it yourself",
        };
        let text = format!("{} {link}\n  (once, within two minutes; {how})\n", "The page:".bold());
        Page { link, text, opener }
    }

    /// Hands it to a browser of this very user, which nobody waits for.
    pub fn show(&self, output: Output) {
        if let Some(opener) = self.opener.as_ref().filter(|opener| !process::set_going(opener)) {
            output.complain(&format!("{} cannot be started; open the link yourself.\n", opener[0]));
        }
    }
}

/// The user's browser, or what the system has for opening links. No shell reads it: words are parted by spaces, `%s` is the link.
fn opener(link: &str) -> Option<Vec<String>> {
    let usual = || USUAL.into_iter().find(|program| environment::on_the_path(program).is_some()).map(str::to_owned);
    // Several may be named, in the order of preference.
    let named = environment::browser().and_then(|named| named.split(':').next().map(str::to_owned));
    let command = named.filter(|name| !name.trim().is_empty()).or_else(usual)?;
    let mut argv: Vec<String> = command.split_whitespace().map(|word| word.replace("%s", link)).collect();
    if !command.contains("%s") {
        argv.push(link.to_owned());
    }
    Some(argv)
}

/// Whether what listens there shows the page of a relay. It gets no code before, and one that only looks like it gets one that
/// is of use nowhere else.
pub fn is_at(listens: SocketAddr) -> bool {
    let ip = match listens.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let address = SocketAddr::new(ip, listens.port());
    let config = ureq::Agent::config_builder().timeout_global(Some(KNOCK)).max_redirects(0).proxy(None).build();
    let agent: ureq::Agent = config.into();
    let answered = agent.get(format!("http://{address}/open")).call();
    let text = answered.ok().and_then(|mut page| page.body_mut().with_config().limit(MOST_BYTES).read_to_string().ok());
    text.is_some_and(|text| text.contains(web::MARK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_names_the_server_as_far_as_anybody_knows() {
        let check = |listens: &str, name: Option<&str>, expected: &str| {
            let listens = listens.parse().unwrap_or_else(|fault| panic!("{listens}: {fault}"));
            assert_eq!(Page::new(listens, name, "c0de").link, expected);
        };
        check("127.0.0.1:7717", None, "http://127.0.0.1:7717/open#c0de");
        check("127.0.0.1:7717", Some("bus.example"), "http://127.0.0.1:7717/open#c0de");
        check("[::1]:7717", None, "http://[::1]:7717/open#c0de");
        check("192.0.2.7:7717", None, "http://192.0.2.7:7717/open#c0de");
        check("192.0.2.7:7717", Some("bus.example"), "http://bus.example:7717/open#c0de");
        check("0.0.0.0:7717", Some("bus.example"), "http://bus.example:7717/open#c0de");
        check("0.0.0.0:7717", None, "/open#c0de");
    }
}

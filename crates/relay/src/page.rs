//! The human's page, from the side of the command that opens it: a link for the server that listens, and a browser for the link.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use owo_colors::OwoColorize;
use relay_server::web;
use relay_store::sockets;

use crate::output::Output;
use crate::{environment, process};

/// One who does not answer within this time is no server of this machine's.
const KNOCK: Duration = Duration::from_secs(5);
/// More than the page has on which a link is opened.
const MOST_BYTES: u64 = 256 * 1024;
/// What shows a link to a person, where no variable says it.
const USUAL: [&str; 2] = ["xdg-open", "open"];

/// Where the page is, and the commands that can show it to a person.
pub struct Place {
    /// Nothing where nobody knows under which name the server is reached.
    address: String,
    browsers: Vec<String>,
}

/// A link that opens the page once.
pub struct Page {
    pub link: String,
    pub text: String,
    /// The commands that show it, the best first.
    commands: Vec<Vec<String>>,
}

impl Place {
    /// Of a server that is reached from elsewhere nobody here knows how; the name that it was given is the best guess.
    pub fn of(listens: SocketAddr, name: Option<&str>) -> Self {
        let address = match (listens.ip().is_loopback(), name) {
            (false, Some(name)) => format!("http://{name}:{}", listens.port()),
            (false, None) if listens.ip().is_unspecified() => String::new(),
            _ => format!("http://{listens}"),
        };
        let browsers = if address.is_empty() { Vec::new() } else { browsers() };
        Place { address, browsers }
    }

    /// Whether a browser gets the link, in whose arguments other users may read it.
    pub fn is_shown(&self) -> bool {
        !self.browsers.is_empty()
    }

    pub fn page(&self, code: &str) -> Page {
        let link = format!("{}/open#{code}", self.address);
        let how = match (self.is_shown(), self.address.is_empty()) {
            (_, true) => "under a name of this server",
            (true, false) => "a browser is asked to open it",
            (false, false) => "there is no browser to open it here: open it yourself",
        };
        let text = format!("{} {link}\n  (once, within two minutes; {how})\n", "The page:".bold());
        let commands = self.browsers.iter().map(|browser| command(browser, &link)).collect();
        Page { link, text, commands }
    }
}

impl Page {
    /// Hands it to the first browser of this very user that starts, which nobody waits for.
    pub fn show(&self, output: Output) {
        if !self.commands.is_empty() && !self.commands.iter().any(|command| process::set_going(command)) {
            output.complain("No browser can be started; open the link yourself.\n");
        }
    }
}

/// The user's browsers, or what the system has for opening links.
fn browsers() -> Vec<String> {
    let is_there = |program: &str| environment::on_the_path(program).is_some();
    let named = environment::browser().filter(|named| named.split(':').any(|browser| !browser.trim().is_empty()));
    named.map_or_else(|| listed(&USUAL.join(":"), is_there), |named| listed(&named, is_there))
}

/// Those of a list that are there, in the order of preference.
fn listed(named: &str, is_there: impl Fn(&str) -> bool) -> Vec<String> {
    let program = |browser: &str| browser.split_whitespace().next().is_some_and(&is_there);
    named.split(':').filter(|browser| program(browser)).map(str::to_owned).collect()
}

/// What is run. No shell reads it: words are parted by spaces, and `%s` stands for the link.
fn command(browser: &str, link: &str) -> Vec<String> {
    let more = if browser.contains("%s") { None } else { Some(link.to_owned()) };
    browser.split_whitespace().map(|word| word.replace("%s", link)).chain(more).collect()
}

/// Whether what listens there shows the page of a relay, and is no other user's: a person believes what such a page shows. It gets
/// no code before, and one that only looks like it gets one that is of use nowhere else.
pub fn is_ours_at(listens: SocketAddr) -> bool {
    if sockets::is_strangers(listens) {
        return false;
    }
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
            assert_eq!(Place::of(listens, name).page("c0de").link, expected);
        };
        check("127.0.0.1:7717", None, "http://127.0.0.1:7717/open#c0de");
        check("127.0.0.1:7717", Some("bus.example"), "http://127.0.0.1:7717/open#c0de");
        check("[::1]:7717", None, "http://[::1]:7717/open#c0de");
        check("192.0.2.7:7717", None, "http://192.0.2.7:7717/open#c0de");
        check("192.0.2.7:7717", Some("bus.example"), "http://bus.example:7717/open#c0de");
        check("0.0.0.0:7717", Some("bus.example"), "http://bus.example:7717/open#c0de");
        check("0.0.0.0:7717", None, "/open#c0de");
    }

    #[test]
    fn browsers_are_a_list_of_which_those_that_are_there_are_tried() {
        let check = |named: &str, expected: &[&[&str]]| {
            let there = listed(named, |program| !program.starts_with("no"));
            let commands: Vec<Vec<String>> = there.iter().map(|browser| command(browser, "http://a/#c")).collect();
            assert_eq!(commands, expected, "{named:?}");
        };
        check("firefox", &[&["firefox", "http://a/#c"]]);
        check("firefox:chromium", &[&["firefox", "http://a/#c"], &["chromium", "http://a/#c"]]);
        check("nothing:chromium --app=%s", &[&["chromium", "--app=http://a/#c"]]);
        check("firefox --new-window %s -P x", &[&["firefox", "--new-window", "http://a/#c", "-P", "x"]]);
        check(":: firefox ; rm $x :", &[&["firefox", ";", "rm", "$x", "http://a/#c"]]);
        check("nothing:nobody %s:", &[]);
    }
}

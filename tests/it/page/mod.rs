//! The human's page, as a browser meets it: who is let onto it, what is done there, and what it is told of.

mod acting;
mod browser;
mod door;
mod forged;
mod hindered;
mod injections;
mod live;
mod looking;
mod opening;
mod stage;
mod story;
mod waiting;

use std::sync::atomic::{AtomicU32, Ordering};

use crate::bus::{Bus, run};
use crate::listening::{Reply, Server};
use crate::terminal::text;

/// Tells the forms of a test apart.
static FORMS: AtomicU32 = AtomicU32::new(0);

/// A person who has opened the page of a server.
pub struct Person<'a> {
    pub server: &'a Server<'a>,
    pub cookie: String,
}

/// What a browser says of a form that a page of this server sends.
pub const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// The code of a new link to this server's page.
pub fn code(server: &Server<'_>) -> String {
    let mut command = server.bus.args("", ["serve", "--open", "--listen", server.address()]);
    command.env("BROWSER", "true");
    let link = text(&run(command).success().result()["page"]);
    link.strip_prefix(&format!("{}/open#", server.url)).unwrap_or_else(|| panic!("{link}")).to_owned()
}

/// Brings a code, as the page does where a link is opened.
pub fn bring(server: &Server<'_>, code: &str) -> Reply {
    server.request("POST", "/open", &[FORM, ("origin", &server.url)], &format!("code={code}"))
}

pub fn slug(bus: &Bus) -> String {
    bus.store().file_name().unwrap().to_str().unwrap().to_owned()
}

pub fn encoded(fields: &[(&str, &str)]) -> String {
    let byte =
        |byte: u8| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let word = |text: &str| text.bytes().map(byte).collect::<String>();
    fields.iter().map(|(name, value)| format!("{}={}", word(name), word(value))).collect::<Vec<_>>().join("&")
}

/// The value of the first hidden field of this name.
pub fn field(page: &str, name: &str) -> String {
    let begins = format!("name=\"{name}\" value=\"");
    let (_, rest) = page.split_once(&begins).unwrap_or_else(|| panic!("no field {name} in {page}"));
    unescaped(rest.split('"').next().unwrap())
}

/// As a browser reads what stands in a page.
pub fn unescaped(text: &str) -> String {
    let known = [("&amp;", "&"), ("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")];
    known.iter().fold(text.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain))
}

impl<'a> Person<'a> {
    pub fn at(server: &'a Server<'a>) -> Self {
        let reply = bring(server, &code(server));
        assert_eq!(reply.status, 303, "{reply:?}");
        let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        Person { server, cookie }
    }

    pub fn get(&self, path: &str) -> Reply {
        self.server.request("GET", path, &[("cookie", &self.cookie)], "")
    }

    /// The token of this session's forms.
    pub fn csrf(&self) -> String {
        field(&self.get("/").text, "csrf")
    }

    /// Where the pages of the bus's project are.
    pub fn place(&self) -> String {
        format!("/p/{}", slug(self.server.bus))
    }

    /// Sends a form of the project's page as it was rendered, with a key of its own.
    pub fn post(&self, action: &str, fields: &[(&str, &str)]) -> Reply {
        let key = format!("key-{}", FORMS.fetch_add(1, Ordering::Relaxed));
        self.post_with(action, &[&[("key", key.as_str())], fields].concat())
    }

    pub fn post_with(&self, action: &str, fields: &[(&str, &str)]) -> Reply {
        let (path, csrf) = (format!("{}/{action}", self.place()), self.csrf());
        let body = encoded(&[&[("csrf", csrf.as_str())], fields].concat());
        let headers = [FORM, ("origin", self.server.url.as_str()), ("cookie", self.cookie.as_str())];
        self.server.request("POST", &path, &headers, &body)
    }

    /// The same, and it must go well: what is said on the page that one is led to.
    #[track_caller]
    pub fn does(&self, action: &str, fields: &[(&str, &str)]) -> String {
        let reply = self.post(action, fields);
        assert_eq!(
            (reply.status, reply.header("location")),
            (303, Some(format!("{}/", self.place()).as_str())),
            "{reply:?}"
        );
        unescaped(&self.get(reply.header("location").unwrap()).text)
    }
}
